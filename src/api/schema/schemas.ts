/** Schema nodes of the built-in types, created on first use from the generated type table and the merge rules. */
import type { GroupVersionKind, JsonValue } from '../meta/object.ts';
import { generatedTypes } from './generated/types.ts';
import { type FieldFacts, fieldFacts, isAtomicType, keyDefaults } from './merge-keys.ts';
import type { ListNode, MapNode, ObjectNode, PatchStrategy, ScalarNode, ScalarType, SchemaNode } from './node.ts';
import { currentTypeName, olderTypes } from './older-types.ts';
import { CATALOG_PACKAGE_ROOT, OLM_ROOT, PACKAGE_SERVER_ROOT } from './olm/roots.ts';
import { openshiftTypes } from './openshift/index.ts';
import type { GeneratedType } from './types-format.ts';

const META_PACKAGE = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const META_KINDS = new Set([
  'DeleteOptions',
  'Status',
  'WatchEvent',
  'APIGroup',
  'APIGroupList',
  'APIResourceList',
  'APIVersions',
]);

/** Name of a kind's type in the schemas, for example `io.k8s.api.rbac.v1.Role`. */
export function schemaNameOf(gvk: GroupVersionKind): string {
  if (gvk.group === '' && META_KINDS.has(gvk.kind)) return `${META_PACKAGE}.${gvk.kind}`;
  // Built-in groups whose types are not in k8s.io/api.
  if (gvk.group === 'apiextensions.k8s.io') {
    return `io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.${gvk.version}.${gvk.kind}`;
  }
  if (gvk.group === 'apiregistration.k8s.io') {
    return `io.k8s.kube-aggregator.pkg.apis.apiregistration.${gvk.version}.${gvk.kind}`;
  }
  if (gvk.group === 'rig.hyperedge.dev') return `dev.hyperedge.rig.${gvk.version}.${gvk.kind}`;
  if (gvk.group === 'machine.hyperedge.dev') return `dev.hyperedge.machine.${gvk.version}.${gvk.kind}`;
  if (gvk.group === 'metal3.io') return `io.metal3.${gvk.version}.${gvk.kind}`;
  if (gvk.group === 'metrics.k8s.io') return `io.k8s.metrics.pkg.apis.metrics.${gvk.version}.${gvk.kind}`;
  if (gvk.group === 'operators.coreos.com') return `${OLM_ROOT}.${gvk.version}.${gvk.kind}`;
  if (gvk.group === 'packages.operators.coreos.com') return `${PACKAGE_SERVER_ROOT}.${gvk.version}.${gvk.kind}`;
  if (gvk.group === 'olm.hyperedge.dev') return `${CATALOG_PACKAGE_ROOT}.${gvk.version}.${gvk.kind}`;
  const dot = gvk.group.indexOf('.');
  if (gvk.group.endsWith('.openshift.io'))
    return `com.github.openshift.api.${gvk.group.slice(0, dot)}.${gvk.version}.${gvk.kind}`;
  const pkg = gvk.group === '' ? 'core' : dot < 0 ? gvk.group : gvk.group.slice(0, dot);
  return `io.k8s.api.${pkg}.${gvk.version}.${gvk.kind}`;
}

/** Schema of a built-in kind or of a list kind; undefined if there is none. */
export function schemaOf(gvk: GroupVersionKind): ObjectNode | undefined {
  return schemaOfType(schemaNameOf(gvk));
}

export function schemaOfType(typeName: string): ObjectNode | undefined {
  const known = types.get(typeName);
  if (known !== undefined) return known;
  const generated = typeOf(typeName);
  if (generated === undefined) return undefined;
  const node = new TypeSchema(typeName, generated, isAtomicType(typeName), NO_STRATEGY);
  types.set(typeName, node);
  return node;
}

/** Raw entry of the type table, for generating documents. */
export function typeOf(typeName: string): GeneratedType | undefined {
  if (Object.hasOwn(generatedTypes, typeName)) return generatedTypes[typeName];
  if (Object.hasOwn(olderTypes, typeName)) return olderTypes[typeName];
  return Object.hasOwn(openshiftTypes, typeName) ? openshiftTypes[typeName] : undefined;
}

export function typeNames(): string[] {
  return [generatedTypes, olderTypes, openshiftTypes].flatMap((table) => Object.keys(table));
}

/** Follows field names through lists and maps; undefined if the path leaves the schema. */
export function schemaNodeAt(node: SchemaNode | undefined, ...path: readonly string[]): SchemaNode | undefined {
  let current = node;
  for (const field of path) {
    while (current?.kind === 'list') current = current.items;
    current =
      current?.kind === 'object' ? current.fields.get(field) : current?.kind === 'map' ? current.items : undefined;
  }
  return current;
}

const NO_STRATEGY: readonly PatchStrategy[] = [];
const NO_KEYS: readonly string[] = [];
const NO_DEFAULTS: Readonly<Record<string, JsonValue>> = {};

const types = new Map<string, TypeSchema>();
const scalars = new Map<string, ScalarNode>();

class TypeSchema implements ObjectNode {
  readonly kind = 'object';
  readonly typeName: string;
  readonly atomic: boolean;
  readonly patchStrategy: readonly PatchStrategy[];
  readonly #generated: GeneratedType;
  #fields: ReadonlyMap<string, SchemaNode> | undefined;

  constructor(typeName: string, generated: GeneratedType, atomic: boolean, patchStrategy: readonly PatchStrategy[]) {
    this.typeName = typeName;
    this.#generated = generated;
    this.atomic = atomic;
    this.patchStrategy = patchStrategy;
  }

  get required(): readonly string[] {
    return this.#generated.r ?? NO_KEYS;
  }

  get fields(): ReadonlyMap<string, SchemaNode> {
    this.#fields ??= new Map(
      Object.entries(this.#generated.f).map(([field, type]) => [
        field,
        useOf(type, fieldFacts(currentTypeName(this.typeName), field)),
      ]),
    );
    return this.#fields;
  }

  /** The same type with the merge rules of a field. */
  used(facts: FieldFacts): ObjectNode {
    if (facts.atomic === undefined && facts.patchStrategy === undefined) return this;
    return new TypeSchema(
      this.typeName,
      this.#generated,
      facts.atomic ?? this.atomic,
      facts.patchStrategy ?? NO_STRATEGY,
    );
  }
}

const NO_FACTS: FieldFacts = {};

function useOf(type: string, facts: FieldFacts): SchemaNode {
  if (type.startsWith('[]')) return listOf(type.slice(2), facts);
  if (type.startsWith('{}')) {
    const node: MapNode = {
      kind: 'map',
      items: useOf(type.slice(2), NO_FACTS),
      atomic: facts.atomic ?? false,
      patchStrategy: facts.patchStrategy ?? NO_STRATEGY,
    };
    return node;
  }
  if (type.startsWith('#')) {
    schemaOfType(type.slice(1));
    const node = types.get(type.slice(1));
    if (node === undefined) throw new Error(`the generated schemas lack ${type.slice(1)}`);
    return node.used(facts);
  }
  let scalar = scalars.get(type);
  if (scalar === undefined) {
    scalar = { kind: 'scalar', type: type as ScalarType, patchStrategy: NO_STRATEGY };
    scalars.set(type, scalar);
  }
  return scalar;
}

function listOf(itemType: string, facts: FieldFacts): ListNode {
  return {
    kind: 'list',
    items: useOf(itemType, NO_FACTS),
    listType: facts.listType ?? 'atomic',
    mapKeys: facts.mapKeys ?? NO_KEYS,
    mapKeyDefaults: itemType.startsWith('#')
      ? defaultsOfKeys(itemType.slice(1), facts.mapKeys ?? NO_KEYS)
      : NO_DEFAULTS,
    patchStrategy: facts.patchStrategy ?? NO_STRATEGY,
    patchMergeKey: facts.patchMergeKey,
  };
}

/**
 * Defaults of key fields. As in upstream's types, a missing required key counts as empty during a merge; validation
 * reports it afterwards.
 */
function defaultsOfKeys(typeName: string, keys: readonly string[]): Readonly<Record<string, JsonValue>> {
  const type = typeOf(typeName);
  const empty: Record<string, JsonValue> = {};
  for (const key of keys) {
    if (type?.r?.includes(key) !== true) continue;
    if (type.f[key] === 'string') empty[key] = '';
    else if (type.f[key] === 'int32') empty[key] = 0;
  }
  return { ...empty, ...keyDefaults(typeName) };
}
