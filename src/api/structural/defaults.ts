/** Defaulting of custom resources. Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting. */
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { fieldOf, isObject, type Schema, setFieldOf } from './schema.ts';
import { featuresOf } from './schema-features.ts';

/**
 * Maximum size of the defaults that are added to one object, as JSON. A short list of empty items and a long default
 * would otherwise become an object of gigabytes, before the store rejects it.
 */
export const MAX_DEFAULT_BYTES = 2 * 1024 * 1024;

/**
 * Sets the defaults of absent fields in place. A null in a field that is not nullable is replaced by the default or
 * dropped; with 'keep' it stays for validation to reject. Returns false if defaults are missing because of their size.
 */
export function applyDefaults(schema: Schema, resource: JsonObject, nulls: 'drop' | 'keep' = 'drop'): boolean {
  const room = { bytes: MAX_DEFAULT_BYTES };
  fill(schema, resource, room);
  if (nulls === 'drop') dropNulls(schema, resource);
  return room.bytes >= 0;
}

/** Size that defaults may still add. Negative after a default that was too large. */
interface Room {
  bytes: number;
}

function fill(schema: Schema, value: JsonValue, room: Room): void {
  if (!featuresOf(schema).defaults) return;
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items === undefined) return;
    for (let index = 0; index < value.length && room.bytes >= 0; index++) {
      if (value[index] === null && !items.nullable && fits(items, '', room)) value[index] = copyOf(items.default);
      fill(items, value[index] ?? null, room);
    }
  } else if (isObject(value)) {
    for (const [name, property] of schema.properties) {
      if (property.default === undefined) continue;
      const now = fieldOf(value, name);
      if ((now === undefined || (now === null && !property.nullable)) && fits(property, name, room))
        setFieldOf(value, name, copyOf(property.default));
    }
    for (const name of Object.keys(value)) {
      if (room.bytes < 0) return;
      const below = schemaAt(schema, name);
      if (below === undefined) continue;
      if (value[name] === null && !below.nullable && fits(below, '', room))
        setFieldOf(value, name, copyOf(below.default));
      fill(below, value[name] ?? null, room);
    }
  }
}

/** Subtracts the size of the schema's default with its name. False if there is no default, or no room for it. */
function fits(schema: Schema, name: string, room: Room): boolean {
  if (schema.default === undefined) return false;
  let bytes = sizes.get(schema);
  if (bytes === undefined) {
    bytes = JSON.stringify(schema.default).length;
    sizes.set(schema, bytes);
  }
  room.bytes -= bytes + name.length;
  return room.bytes >= 0;
}

const sizes = new WeakMap<Schema, number>();

/** Copies a default. `structuredClone` takes ten times as long for small values. */
function copyOf(value: JsonValue | undefined): JsonValue {
  if (Array.isArray(value)) return value.map(copyOf);
  if (!isObject(value)) return value ?? null;
  const copy: JsonObject = {};
  for (const name of Object.keys(value)) setFieldOf(copy, name, copyOf(value[name]));
  return copy;
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
