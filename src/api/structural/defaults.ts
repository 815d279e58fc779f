/** Defaulting of custom resources. Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting. */
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { fieldOf, isObject, type Schema, setFieldOf } from './schema.ts';
import { featuresOf } from './schema-features.ts';

/**
 * Sets the defaults of absent fields in place. A null in a field that is not nullable is replaced by the default or
 * dropped; with 'keep' it stays for validation to reject.
 */
export function applyDefaults(schema: Schema, resource: JsonObject, nulls: 'drop' | 'keep' = 'drop'): void {
  fill(schema, resource);
  if (nulls === 'drop') dropNulls(schema, resource);
}

function fill(schema: Schema, value: JsonValue): void {
  if (!featuresOf(schema).defaults) return;
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items === undefined) return;
    for (let index = 0; index < value.length; index++) {
      if (value[index] === null && !items.nullable && items.default !== undefined)
        value[index] = structuredClone(items.default);
      fill(items, value[index] ?? null);
    }
  } else if (isObject(value)) {
    for (const [name, property] of schema.properties) {
      if (property.default === undefined) continue;
      const now = fieldOf(value, name);
      if (now === undefined || (now === null && !property.nullable))
        setFieldOf(value, name, structuredClone(property.default));
    }
    for (const name of Object.keys(value)) {
      const below = schemaAt(schema, name);
      if (below === undefined) continue;
      if (value[name] === null && !below.nullable && below.default !== undefined)
        setFieldOf(value, name, structuredClone(below.default));
      fill(below, value[name] ?? null);
    }
  }
}

function dropNulls(schema: Schema, value: JsonValue): void {
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items === undefined) return;
    for (const item of value) if (typeof item === 'object' && item !== null) dropNulls(items, item);
  } else if (isObject(value)) {
    for (const name of Object.keys(value)) {
      const below = schemaAt(schema, name);
      if (below === undefined) continue;
      const now = value[name] ?? null;
      if (now === null && !below.nullable) delete value[name];
      else if (typeof now === 'object') dropNulls(below, now);
    }
  }
}

function schemaAt(schema: Schema, name: string): Schema | undefined {
  return schema.properties.get(name) ?? (typeof schema.additional === 'object' ? schema.additional : undefined);
}
