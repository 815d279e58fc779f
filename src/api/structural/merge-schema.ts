/** Schema of a custom resource for server-side apply. Source: structured-merge-diff's schemaconv. */

import type { JsonValue } from '../meta/object.ts';
import { schemaOfType } from '../schema/index.ts';
import type { ListNode, MapNode, ObjectNode, ScalarNode, ScalarType, SchemaNode } from '../schema/node.ts';
import type { Schema } from './schema.ts';

const NO_STRATEGY = [] as const;
const META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const scalar = (type: ScalarType): ScalarNode => ({ kind: 'scalar', type, patchStrategy: NO_STRATEGY });
const ANY = scalar('any');
const STRING = scalar('string');

/**
 * Merge schema of the whole resource, including the fields that every object has. `open`: fields that are not in the
 * schema are accepted.
 */
export function mergeSchemaOf(schema: Schema | undefined, open = false): ObjectNode {
  const metadata = schemaOfType(META);
  const fields = new Map<string, SchemaNode>([
    ['apiVersion', STRING],
    ['kind', STRING],
  ]);
  if (metadata !== undefined) fields.set('metadata', metadata);
  for (const [name, property] of schema?.properties ?? [])
    if (!fields.has(name)) fields.set(name, nodeOf(property, open));
  return objectNode(fields, open || (schema?.preserve ?? true), false);
}

function objectNode(fields: ReadonlyMap<string, SchemaNode>, open: boolean, atomic: boolean): ObjectNode {
  return {
    kind: 'object',
    typeName: '',
    fields: open ? new OpenFields(fields) : fields,
    required: [],
    atomic,
    patchStrategy: NO_STRATEGY,
  };
}

/** Fields of a schema that accepts undeclared fields: these have any type. */
class OpenFields extends Map<string, SchemaNode> {
  override get(name: string): SchemaNode {
    return super.get(name) ?? ANY;
  }
}

function nodeOf(schema: Schema, open: boolean): SchemaNode {
  if (schema.intOrString) return scalar('int-or-string');
  if (schema.embedded) return mergeSchemaOf(schema, open);
  switch (schema.type) {
    case 'object':
      return structureOf(schema, open);
    case 'array':
      return listOf(schema, open);
    case 'string':
      return STRING;
    case 'integer':
      return scalar('int64');
    case 'number':
      return scalar('number');
    case 'boolean':
      return scalar('boolean');
    default:
      return ANY;
  }
}

function structureOf(schema: Schema, open: boolean): SchemaNode {
  const atomic = schema.mapType === 'atomic';
  if (schema.additional !== undefined && schema.additional !== false) {
    const node: MapNode = {
      kind: 'map',
      items: schema.additional === true ? ANY : nodeOf(schema.additional, open),
      atomic,
      patchStrategy: NO_STRATEGY,
    };
    return node;
  }
  const fields = new Map([...schema.properties].map(([name, property]) => [name, nodeOf(property, open)]));
  const isOpen = open || schema.preserve;
  if (fields.size === 0 && isOpen) return atomic ? { ...objectNode(fields, true, true) } : ANY;
  return objectNode(fields, isOpen, atomic);
}

function listOf(schema: Schema, open: boolean): ListNode {
  const listType = schema.listType === 'set' || schema.listType === 'map' ? schema.listType : 'atomic';
  const mapKeyDefaults: Record<string, JsonValue> = {};
  for (const key of schema.listMapKeys) {
    const value = schema.items?.properties.get(key)?.default;
    if (value !== undefined) mapKeyDefaults[key] = value;
  }
  return {
    kind: 'list',
    items: schema.items === undefined ? ANY : nodeOf(schema.items, open),
    listType,
    mapKeys: schema.listMapKeys,
    mapKeyDefaults,
    patchStrategy: NO_STRATEGY,
    patchMergeKey: undefined,
  };
}
