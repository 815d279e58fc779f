/**
 * Pruning of fields that are not in the schema. Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning.
 */
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { isObject, type Schema } from './schema.ts';

const MAX_REPORTED = 64;
const RESOURCE_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/** Prunes a whole resource in place and returns the paths of dropped fields, up to a limit. */
export function pruneUnknownFields(schema: Schema, resource: JsonObject): string[] {
  const dropped: string[] = [];
  pruneObject(schema, resource, '', dropped, true);
  return dropped;
}

/** Like `prune`, for a value that is not a whole resource, such as a default. */
export function pruneValue(schema: Schema, value: JsonValue): string[] {
  const dropped: string[] = [];
  pruneBelow(schema, value, '', dropped);
  return dropped;
}

function pruneBelow(schema: Schema | undefined, value: JsonValue, path: string, dropped: string[]): void {
  if (Array.isArray(value)) {
    if (schema?.items === undefined && schema?.preserve === true) return;
    for (const [index, item] of value.entries())
      if (isContainer(item)) pruneBelow(schema?.items, item, `${path}[${index}]`, dropped);
  } else if (isObject(value)) pruneObject(schema, value, path, dropped, schema?.embedded === true);
}

function pruneObject(
  schema: Schema | undefined,
  value: JsonObject,
  path: string,
  dropped: string[],
  resource: boolean,
): void {
  for (const name of Object.keys(value)) {
    if (resource && RESOURCE_FIELDS.has(name)) continue;
    const below = value[name];
    const known = schema?.properties.get(name);
    if (known !== undefined) {
      if (isContainer(below)) pruneBelow(known, below, placeOf(path, name), dropped);
    } else if (schema?.additional !== undefined) {
      const values = typeof schema.additional === 'object' ? schema.additional : undefined;
      if (isContainer(below) && (!schema.preserve || values !== undefined))
        pruneBelow(values, below, placeOf(path, name), dropped);
    } else if (schema?.preserve !== true) {
      if (dropped.length < MAX_REPORTED) dropped.push(placeOf(path, name));
      delete value[name];
    }
  }
}

const placeOf = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

/** Whether the value is an object or a list. Other values have no fields to prune. */
const isContainer = (value: JsonValue | undefined): value is JsonObject | JsonValue[] =>
  typeof value === 'object' && value !== null;
