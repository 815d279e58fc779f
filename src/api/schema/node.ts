/**
 * Schema nodes with the rules for merging. A node describes a use of a type: two fields of the same type have different
 * nodes if their patch or list rules differ. Sources: the OpenAPI vendor extensions
 * x-kubernetes-{patch-strategy,patch-merge-key,list-type,list-map-keys,map-type}.
 */
import type { GroupVersionKind, JsonValue } from '../meta/object.ts';

export type SchemaNode = ObjectNode | MapNode | ListNode | ScalarNode;

/** Strategies of strategic merge patches. */
export type PatchStrategy = 'merge' | 'replace' | 'retainKeys';

interface NodeFacts {
  /** Strategy of the field. Empty means the default: maps and objects are merged, lists are replaced. */
  readonly patchStrategy: readonly PatchStrategy[];
}

/** A struct with known fields. `fields` is computed on first use, so types may be recursive. */
export interface ObjectNode extends NodeFacts {
  readonly kind: 'object';
  /** Name in the generated schemas, for example `io.k8s.api.core.v1.PodSpec`. */
  readonly typeName: string;
  readonly fields: ReadonlyMap<string, SchemaNode>;
  readonly required: readonly string[];
  /** Whether server-side apply owns and replaces the struct as a whole (x-kubernetes-map-type: atomic). */
  readonly atomic: boolean;
}

export interface MapNode extends NodeFacts {
  readonly kind: 'map';
  readonly items: SchemaNode;
  readonly atomic: boolean;
}

export interface ListNode extends NodeFacts {
  readonly kind: 'list';
  readonly items: SchemaNode;
  /** List type for server-side apply. A list without a declared type is atomic. */
  readonly listType: 'atomic' | 'set' | 'map';
  /** Fields that identify an item, for listType 'map'. */
  readonly mapKeys: readonly string[];
  /** Defaults of key fields that an item may omit (`protocol: TCP`). */
  readonly mapKeyDefaults: Readonly<Record<string, JsonValue>>;
  /** Key field by which strategic merge identifies list items. Set for lists of objects with patchStrategy 'merge'. */
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
  /** Any JSON value (RawExtension, FieldsV1, JSON). */
  | 'any';

export interface ScalarNode extends NodeFacts {
  readonly kind: 'scalar';
  readonly type: ScalarType;
}

/** Schema of a kind; undefined if it is not built in. */
export type SchemaLookup = (gvk: GroupVersionKind) => ObjectNode | undefined;
