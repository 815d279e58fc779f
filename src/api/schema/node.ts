/**
 * The schema of a place in a document, with everything that merging needs to know about it. A node describes a *use* of
 * a type: two fields of the same type have nodes of their own when their patch or list rules differ. Sources: the
 * OpenAPI vendor extensions x-kubernetes-{patch-strategy,patch-merge-key,list-type,list-map-keys,map-type}.
 */
import type { GroupVersionKind, JsonValue } from '../meta/object.ts';

export type SchemaNode = ObjectNode | MapNode | ListNode | ScalarNode;

/** Strategic merge: `merge` a list by key (or as a set), `replace` it, and for unions `retainKeys`. */
export type PatchStrategy = 'merge' | 'replace' | 'retainKeys';

interface NodeFacts {
  /** From the field that uses the type; empty: the default (maps and objects merge, lists are replaced). */
  readonly patchStrategy: readonly PatchStrategy[];
}

/** A structure with known fields. `fields` is computed on first use, so recursive types are fine. */
export interface ObjectNode extends NodeFacts {
  readonly kind: 'object';
  /** Name in the generated schemas, `io.k8s.api.core.v1.PodSpec`. */
  readonly typeName: string;
  readonly fields: ReadonlyMap<string, SchemaNode>;
  readonly required: readonly string[];
  /** Owned and replaced as a whole by server-side apply (x-kubernetes-map-type: atomic). */
  readonly atomic: boolean;
}

/** A map from arbitrary strings to values of one type. */
export interface MapNode extends NodeFacts {
  readonly kind: 'map';
  readonly items: SchemaNode;
  readonly atomic: boolean;
}

export interface ListNode extends NodeFacts {
  readonly kind: 'list';
  readonly items: SchemaNode;
  /** For server-side apply; a list without a declared type is atomic. */
  readonly listType: 'atomic' | 'set' | 'map';
  /** With listType 'map': the fields that identify an item. */
  readonly mapKeys: readonly string[];
  /** Values of key fields that an item may leave out (`protocol: TCP`). */
  readonly mapKeyDefaults: Readonly<Record<string, JsonValue>>;
  /** For strategic merge, with patchStrategy 'merge' on lists of objects. */
  readonly patchMergeKey: string | undefined;
}

export type ScalarType =
  | 'string'
  | 'int32'
  | 'int64'
  | 'number'
  | 'boolean'
  | 'int-or-string'
  | 'quantity'
  | 'date-time'
  | 'date-time-micro'
  /** base64 text */
  | 'byte'
  /** Any JSON value, nested ones included (RawExtension, FieldsV1, JSON). */
  | 'any';

export interface ScalarNode extends NodeFacts {
  readonly kind: 'scalar';
  readonly type: ScalarType;
}

/** Finds the schema of a kind; undefined when the kind is not built in. */
export type SchemaLookup = (gvk: GroupVersionKind) => ObjectNode | undefined;
