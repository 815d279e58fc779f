/**
 * Schema objects of the built-in types for OpenAPI v2 and v3: structure, documentation and vendor extensions. Source:
 * k8s.io/kube-openapi; the Kubernetes API's published OpenAPI documents.
 */

import { servedKinds } from '../discovery/index.ts';
import type { GroupVersionKind } from '../meta/object.ts';
import type { KindDefinition } from '../registry/definition.ts';
import { enumerationValues } from '../schema/enumerations.ts';
import { schemaNameOf, schemaOfType, typeOf } from '../schema/index.ts';
import { fieldFacts, isAtomicType, keyDefaults } from '../schema/merge-keys.ts';
import { currentTypeName } from '../schema/older-types.ts';
import type { Descriptions } from '../schema/types-format.ts';
import { DELETE_OPTIONS_TYPE, PATCH_TYPE, STATUS_TYPE } from './operations.ts';

export type OpenApiVersion = 2 | 3;

/** A JSON Schema object in an OpenAPI document. */
export type SchemaObject = { [key: string]: unknown };

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity';
const INT_OR_STRING = 'io.k8s.apimachinery.pkg.util.intstr.IntOrString';
const RAW_EXTENSION = 'io.k8s.apimachinery.pkg.runtime.RawExtension';
/** Types of JSON values inside CustomResourceDefinition schemas. */
const APIEXTENSIONS = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1';
const ANY_JSON = `${APIEXTENSIONS}.JSON`;
const FIELDS_V1 = `${META}.FieldsV1`;
const TIME = `${META}.Time`;
const MICRO_TIME = `${META}.MicroTime`;

/** Scalar types with a name of their own, by which clients recognize them. */
const NAMED_SCALARS: Readonly<Record<string, (version: OpenApiVersion) => SchemaObject>> = {
  [QUANTITY]: (version) => ({
    description: 'A fixed-point number with a decimal or binary suffix, such as 500m or 2Gi.',
    ...(version === 2 ? { type: 'string' } : { oneOf: [{ type: 'string' }, { type: 'number' }] }),
  }),
  [INT_OR_STRING]: (version) => ({
    description: 'An integer, or a string such as a percentage or the name of a port.',
    format: 'int-or-string',
    ...(version === 2 ? { type: 'string' } : { oneOf: [{ type: 'integer' }, { type: 'string' }] }),
  }),
  [RAW_EXTENSION]: () => ({ description: 'Any object.', type: 'object' }),
  [FIELDS_V1]: () => ({ description: 'A set of fields as a trie in JSON.', type: 'object' }),
  [ANY_JSON]: () => ({ description: 'Any JSON value.' }),
  [TIME]: () => ({ description: 'A moment as RFC 3339 text, to the second.', type: 'string', format: 'date-time' }),
  [MICRO_TIME]: () => ({
    description: 'A moment as RFC 3339 text, to the microsecond.',
    type: 'string',
    format: 'date-time',
  }),
  [PATCH_TYPE]: () => ({ description: 'A change in one of the patch formats.', type: 'object' }),
};

const SCALAR_REFS: Readonly<Record<string, string>> = {
  quantity: QUANTITY,
  'int-or-string': INT_OR_STRING,
  'date-time': TIME,
  'date-time-micro': MICRO_TIME,
};

const SCALARS: Readonly<Record<string, SchemaObject>> = {
  string: { type: 'string' },
  boolean: { type: 'boolean' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  number: { type: 'number', format: 'double' },
  byte: { type: 'string', format: 'byte' },
};

/** Schemas of custom resources and their lists, by name. */
export type CustomSchemas = ReadonlyMap<string, (version: OpenApiVersion) => SchemaObject>;

const NO_CUSTOM: CustomSchemas = new Map();

export function customSchemas(kinds: readonly KindDefinition[]): CustomSchemas {
  const found = new Map<string, (version: OpenApiVersion) => SchemaObject>();
  for (const kind of kinds) {
    const { custom, group, version, schemaName } = kind;
    if (custom === undefined) continue;
    const selectable = Object.keys(kind.fieldSelectors ?? {}).map((fieldPath) => ({ fieldPath }));
    const about = (name: string) => ({
      'x-kubernetes-group-version-kind': [{ group, kind: name, version }],
      ...(selectable.length === 0 ? {} : { 'x-kubernetes-selectable-fields': selectable }),
    });
    const reference = (form: OpenApiVersion, name: string): SchemaObject => ({
      $ref: `${form === 2 ? '#/definitions' : '#/components/schemas'}/${name}`,
    });
    found.set(schemaName, (form) => ({ ...custom.openapi(form), ...about(kind.kind) }));
    found.set(schemaName.replace(/[^.]+$/, kind.listKind), (form) => ({
      description: `${kind.listKind} is a list of ${kind.kind}`,
      type: 'object',
      required: ['items'],
      properties: {
        apiVersion: { type: 'string' },
        items: { description: `List of ${kind.plural}.`, type: 'array', items: reference(form, schemaName) },
        kind: { type: 'string' },
        metadata: form === 2 ? reference(2, `${META}.ListMeta`) : { allOf: [reference(3, `${META}.ListMeta`)] },
      },
      ...about(kind.listKind),
    }));
  }
  return found;
}

/** Renders the types `roots` and all types that they refer to. */
export function renderDefinitions(
  roots: Iterable<string>,
  version: OpenApiVersion,
  descriptions: Descriptions,
  gvks: ReadonlyMap<string, readonly GroupVersionKind[]>,
  custom: CustomSchemas = NO_CUSTOM,
): { [name: string]: SchemaObject } {
  const rendered = new Map<string, SchemaObject>();
  const queue = [...roots];
  const use = (name: string): void => {
    if (!rendered.has(name)) queue.push(name);
  };
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (rendered.has(name)) continue;
    const own = custom.get(name);
    if (own !== undefined) {
      rendered.set(name, own(version));
      for (const each of [`${META}.ObjectMeta`, `${META}.ListMeta`]) use(each);
      continue;
    }
    const scalar = Object.hasOwn(NAMED_SCALARS, name) ? NAMED_SCALARS[name] : undefined;
    rendered.set(name, scalar?.(version) ?? renderType(name, version, descriptions, gvks.get(name), use));
  }
  return Object.fromEntries([...rendered].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function renderType(
  name: string,
  version: OpenApiVersion,
  descriptions: Descriptions,
  gvks: readonly GroupVersionKind[] | undefined,
  use: (name: string) => void,
): SchemaObject {
  const type = typeOf(name);
  if (type === undefined) throw new Error(`the generated schemas lack ${name}`);
  const documented = currentTypeName(name);
  const texts = Object.hasOwn(descriptions, documented) ? descriptions[documented] : undefined;
  const properties: { [field: string]: SchemaObject } = {};
  for (const [field, compact] of Object.entries(type.f)) {
    const text = texts !== undefined && Object.hasOwn(texts.f, field) ? texts.f[field] : undefined;
    const description = explained(text, enumerationValues(documented, field));
    properties[field] = {
      ...(description === undefined ? {} : { description }),
      ...renderField(name, field, compact, version, description !== undefined, use),
    };
  }
  return {
    ...(texts === undefined || texts.d === '' ? {} : { description: texts.d }),
    type: 'object',
    ...(type.r === undefined ? {} : { required: [...type.r].sort() }),
    properties,
    ...(isAtomicType(name) ? { 'x-kubernetes-map-type': 'atomic' } : {}),
    ...(gvks === undefined
      ? {}
      : {
          'x-kubernetes-group-version-kind': gvks.map(({ group, kind, version: served }) => ({
            group,
            kind,
            version: served,
          })),
        }),
  };
}

/** Description of a field, extended by its possible values. */
function explained(text: string | undefined, values: readonly string[] | undefined): string | undefined {
  if (text === undefined || values === undefined) return text;
  return `${text}\n\nPossible enum values:\n${values.map((value) => ` - \`${JSON.stringify(value)}\``).join('\n')}`;
}

function withValues(schema: SchemaObject, values: readonly string[] | undefined): SchemaObject {
  if (values === undefined) return schema;
  for (const inside of ['items', 'additionalProperties'] as const) {
    const of = schema[inside];
    if (of !== undefined) return { ...schema, [inside]: { ...(of as SchemaObject), enum: values } };
  }
  return { ...schema, enum: values };
}

function renderField(
  typeName: string,
  field: string,
  compact: string,
  version: OpenApiVersion,
  described: boolean,
  use: (name: string) => void,
): SchemaObject {
  const facts = fieldFacts(currentTypeName(typeName), field);
  const plain = renderUse(anyType(typeName, field, compact), version, { described }, use);
  const schema = withValues(plain, enumerationValues(currentTypeName(typeName), field));
  const extensions: SchemaObject = {};
  if (compact.startsWith('[]')) {
    extensions['x-kubernetes-list-type'] = facts.listType ?? 'atomic';
    if (facts.mapKeys !== undefined) extensions['x-kubernetes-list-map-keys'] = [...facts.mapKeys];
  } else if (facts.atomic === true) extensions['x-kubernetes-map-type'] = 'atomic';
  if (facts.patchMergeKey !== undefined) extensions['x-kubernetes-patch-merge-key'] = facts.patchMergeKey;
  if (facts.patchStrategy !== undefined) extensions['x-kubernetes-patch-strategy'] = facts.patchStrategy.join(',');
  const defaults = version === 3 ? keyDefaults(typeName) : {};
  if (Object.hasOwn(defaults, field)) schema['default'] = defaults[field];
  return { ...schema, ...extensions };
}

/** Replaces arbitrary JSON in a field's type by the named type that upstream has for the field. */
function anyType(typeName: string, field: string, compact: string): string {
  if (typeName.startsWith(`${APIEXTENSIONS}.JSONSchemaProps`)) return compact.replace(/(^|\])any$/, `$1#${ANY_JSON}`);
  if (compact !== 'any') return compact;
  return typeName === `${META}.ManagedFieldsEntry` && field === 'fieldsV1' ? `#${FIELDS_V1}` : `#${RAW_EXTENSION}`;
}

/**
 * Renders a type where it is used. `described`: the use has other keywords beside a reference; v3 then requires allOf.
 */
function renderUse(
  compact: string,
  version: OpenApiVersion,
  { described }: { readonly described: boolean },
  use: (name: string) => void,
): SchemaObject {
  if (compact.startsWith('[]')) {
    return { type: 'array', items: renderUse(anyItem(compact.slice(2)), version, { described: false }, use) };
  }
  if (compact.startsWith('{}')) {
    return {
      type: 'object',
      additionalProperties: renderUse(anyItem(compact.slice(2)), version, { described: false }, use),
    };
  }
  const target = compact.startsWith('#') ? compact.slice(1) : SCALAR_REFS[compact];
  if (target !== undefined) {
    use(target);
    if (version === 2) return { $ref: `#/definitions/${target}` };
    const reference = { $ref: `#/components/schemas/${target}` };
    return described ? { allOf: [reference] } : reference;
  }
  return { ...SCALARS[compact] };
}

function anyItem(compact: string): string {
  return compact === 'any' ? `#${RAW_EXTENSION}` : compact;
}

/** Kinds by schema name, including lists and meta kinds. */
export function schemaGvks(kinds: readonly KindDefinition[]): Map<string, GroupVersionKind[]> {
  const found = new Map<string, GroupVersionKind[]>();
  const add = (gvk: GroupVersionKind): void => {
    const name = schemaNameOf(gvk);
    if (schemaOfType(name) !== undefined) found.set(name, [gvk]);
  };
  const metaVersions: GroupVersionKind[] = [];
  for (const { kind, group, version } of servedKinds(kinds)) {
    add({ group, version, kind: kind.kind });
    if (kind.isComputed !== true) add({ group, version, kind: kind.listKind });
    for (const sub of kind.extraSubresources ?? []) {
      add({ group: sub.group ?? group, version: sub.version ?? version, kind: sub.kind });
    }
    if (!metaVersions.some((each) => each.group === group && each.version === version)) {
      metaVersions.push({ group, version, kind: 'DeleteOptions' });
    }
  }
  add({ group: 'autoscaling', version: 'v1', kind: 'Scale' });
  found.set(DELETE_OPTIONS_TYPE, metaVersions);
  found.set(STATUS_TYPE, [{ group: '', version: 'v1', kind: 'Status' }]);
  return found;
}
