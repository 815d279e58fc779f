/**
 * Operations on JSON documents. Keys come from users: `__proto__` is an ordinary key and never sets a prototype.
 * Functions of this folder do not change their arguments, and their results share no objects with the arguments.
 * Documented exceptions are entries of `metadata.managedFields`, which are never changed in place.
 */
import type { JsonObject, JsonValue } from '../../../api/meta/object.ts';

export type { JsonObject, JsonValue };

/** Maximum nesting depth of documents, because they are processed recursively. */
export const MAX_DEPTH = 512;

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isScalar(value: JsonValue | undefined): value is string | number | bigint | boolean {
  return value !== null && value !== undefined && typeof value !== 'object';
}

/** Value of a field. Undefined if it is absent. */
export function field(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

export function setField(object: JsonObject, key: string, value: JsonValue): void {
  // Assigning to `__proto__` would change the prototype; defining it creates an ordinary field.
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    object[key] = value;
  }
}

/** Deep copy. Fields with the value undefined are omitted, as in JSON. */
export function cloneJson<T extends JsonValue>(value: T): T;
export function cloneJson(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => cloneJson(item));
  const keys = Object.keys(value);
  if (keys.length > MANY) return cloneMany(value, keys);
  // A spread keeps the hidden class of the object, and copies `__proto__` as an ordinary field.
  const copy: JsonObject = { ...value };
  for (const key of keys) {
    const own = copy[key];
    if (own === undefined) delete copy[key];
    else if (typeof own === 'object') copy[key] = cloneJson(own);
  }
  return copy;
}

/**
 * Objects with this many fields have no hidden class. Copying their fields individually is several times faster than a
 * spread.
 */
const MANY = 512;

function cloneMany(value: JsonObject, keys: readonly string[]): JsonObject {
  const copy: JsonObject = {};
  for (const key of keys) {
    const own = value[key];
    if (own !== undefined) setField(copy, key, cloneJson(own));
  }
  return copy;
}

export function shallowCopy<T>(object: Readonly<Record<string, T>>): Record<string, T> {
  const keys = Object.keys(object);
  if (keys.length <= MANY) return { ...object };
  const copy: Record<string, T> = {};
  for (const key of keys) setField(copy as JsonObject, key, object[key] as JsonValue);
  return copy;
}

/** JSON equality: the order of fields is ignored, the order of list items is not. */
export function jsonEqual(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => jsonEqual(item, b[index]));
  }
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && jsonEqual(a[key], b[key]));
}

/** Reports whether `value` is nested deeper than `limit`. Does not recurse. */
export function isDeeperThan(value: JsonValue, limit: number): boolean {
  let level: JsonValue[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limit) return true;
    const next: JsonValue[] = [];
    for (const each of level) {
      if (typeof each !== 'object' || each === null) continue;
      if (Array.isArray(each)) {
        for (const child of each) if (typeof child === 'object' && child !== null) next.push(child);
        continue;
      }
      for (const key of Object.keys(each)) {
        const child = each[key];
        if (typeof child === 'object' && child !== null) next.push(child);
      }
    }
    level = next;
  }
  return false;
}

/** Approximate size of `value` as JSON, counted up to `limit`. Strings count with their length in UTF-16 units. */
export function sizeOf(value: JsonValue, limit: number): number {
  let size = 0;
  const pending: JsonValue[] = [value];
  for (let each = pending.pop(); each !== undefined && size <= limit; each = pending.pop()) {
    if (typeof each === 'string') {
      size += each.length + 2;
    } else if (typeof each !== 'object' || each === null) {
      size += 4;
    } else if (Array.isArray(each)) {
      size += each.length + 2;
      for (const item of each) pending.push(item);
    } else {
      size += 2;
      for (const key of Object.keys(each)) {
        size += key.length + 4;
        pending.push(each[key] ?? null);
      }
    }
  }
  return size;
}
