/** Converts values to JSON. Source: protobuf's JSON mapping of google.protobuf.Value, which upstream uses. */

import { integerOf } from '../../base/json/json.ts';
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { formatDuration, formatTimestamp } from './library/time.ts';
import { CelMap, Duration, EvaluationError, isList, Timestamp, typeOf, Uint, type Value } from './values.ts';

/** Size limit of one value in characters and elements, because expressions can contain the same list many times. */
const MAX_SIZE = 3 * 1024 * 1024;
const NODE_SIZE = 8;
const MAX_DEPTH = 200;

interface Room {
  left: number;
  readonly wide: WideIntegers;
}

/** How to convert integers that a double cannot represent: to exact integers, or to strings as in protobuf's JSON. */
type WideIntegers = 'exact' | 'text';

/** Converts a value to JSON. Throws EvaluationError for a value without a JSON form or above the size limit. */
export function toJson(value: Value, wide: WideIntegers = 'exact'): JsonValue {
  return convert(value, { left: MAX_SIZE, wide }, 0);
}

function integer(exact: bigint, wide: WideIntegers): JsonValue {
  const value = integerOf(exact);
  return typeof value === 'bigint' && wide === 'text' ? String(value) : value;
}

function convert(value: Value, room: Room, depth: number): JsonValue {
  room.left -= NODE_SIZE + (typeof value === 'string' ? value.length : 0);
  if (room.left < 0 || depth > MAX_DEPTH) throw new EvaluationError('the value is too large');
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'bigint') return integer(value, room.wide);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new EvaluationError(`${value} has no form in JSON`);
    return value;
  }
  if (value instanceof Uint) return integer(value.value, room.wide);
  if (value instanceof CelMap) return convertMap(value, room, depth);
  if (isList(value)) {
    const items: JsonValue[] = [];
    for (const item of value) items.push(convert(item, room, depth + 1));
    return items;
  }
  if (value instanceof Uint8Array) return btoa(Array.from(value, (byte) => String.fromCharCode(byte)).join(''));
  if (value instanceof Timestamp) return formatTimestamp(value);
  if (value instanceof Duration) return formatDuration(value);
  throw new EvaluationError(`a value of type ${typeOf(value)} has no form in JSON`);
}

function convertMap(map: CelMap, room: Room, depth: number): JsonObject {
  const entries: [string, JsonValue][] = [];
  for (const key of map.keys()) {
    if (typeof key !== 'string') throw new EvaluationError(`map key ${String(key)} is not a string`);
    room.left -= key.length;
    entries.push([key, convert(map.get(key) ?? null, room, depth + 1)]);
  }
  // Object.fromEntries creates own properties, also for names such as `__proto__`.
  return Object.fromEntries(entries);
}
