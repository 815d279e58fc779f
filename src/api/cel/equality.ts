/** Equality of values. Source: cel-spec, doc/langdef.md (equality). */
import { ANY_READER, fromJson, JsonList } from './documents.ts';
import { chargeCost } from './meter.ts';
import {
  CelMap,
  Duration,
  isList,
  type List,
  numericValue,
  Opaque,
  Optional,
  StructValue,
  Timestamp,
  TypeValue,
  type Value,
} from './values.ts';

export function celEqual(a: Value, b: Value): boolean {
  if (a === b) return true;
  const left = numericValue(a);
  if (left !== undefined) {
    const right = numericValue(b);
    // biome-ignore lint/suspicious/noDoubleEquals: an int and a double of one value are equal in CEL.
    return right !== undefined && left == right;
  }
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (a instanceof StructValue || b instanceof StructValue) {
    if (!(a instanceof StructValue && b instanceof StructValue && a.typeName === b.typeName)) return false;
  }
  if (a instanceof CelMap) return b instanceof CelMap && equalMaps(a, b);
  if (isList(a)) return isList(b) && equalLists(a, b);
  if (a instanceof Uint8Array)
    return b instanceof Uint8Array && a.length === b.length && a.every((byte, index) => byte === b[index]);
  if (a instanceof Timestamp) return b instanceof Timestamp && a.ns === b.ns;
  if (a instanceof Duration) return b instanceof Duration && a.ns === b.ns;
  if (a instanceof TypeValue) return b instanceof TypeValue && a.type === b.type;
  if (a instanceof Optional) {
    if (!(b instanceof Optional)) return false;
    return a.value === undefined || b.value === undefined ? a.value === b.value : celEqual(a.value, b.value);
  }
  return a instanceof Opaque && b instanceof Opaque && a.type === b.type && a.identity === b.identity;
}

function equalLists(a: List, b: List): boolean {
  if (a.length !== b.length) return false;
  const ours = a instanceof JsonList ? a.keyed() : undefined;
  const theirs = b instanceof JsonList ? b.keyed() : undefined;
  if (ours !== undefined && theirs !== undefined) {
    chargeCost(a.length + b.length);
    // Lists of type set or map are equal if they have the same items in any order.
    for (const [key, item] of ours) {
      const other = theirs.get(key);
      if (other === undefined || !celEqual(fromJson(item, ANY_READER), fromJson(other, ANY_READER))) return false;
    }
    return true;
  }
  for (let index = 0; index < a.length; index++) {
    chargeCost(1);
    if (!celEqual(a.at(index) ?? null, b.at(index) ?? null)) return false;
  }
  return true;
}

function equalMaps(a: CelMap, b: CelMap): boolean {
  if (a.size !== b.size) return false;
  for (const key of a.keys()) {
    chargeCost(4);
    const left = a.get(key);
    const right = b.get(key);
    if (left === undefined || right === undefined) {
      if (left !== right) return false;
    } else if (!celEqual(left, right)) return false;
  }
  return true;
}
