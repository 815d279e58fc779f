/** Arithmetic, comparison and conversion. Source: cel-spec, doc/langdef.md (list of standard definitions). */

import { JsonList } from '../documents.ts';
import { celEqual } from '../equality.ts';
import { declareFunction, type Overload, perCharacter } from '../functions.ts';
import {
  CelMap,
  Duration,
  EvaluationError,
  keyOf,
  type List,
  numericValue,
  Timestamp,
  TypeValue,
  typeOf,
  Uint,
  type Value,
} from '../values.ts';
import { formatDuration, formatTimestamp, moment, parseDuration, parseTimestamp } from './time.ts';

const INT_MAX = 2n ** 63n - 1n;
const INT_MIN = -(2n ** 63n);
const UINT_MAX = 2n ** 64n - 1n;

export function int(value: bigint): bigint {
  if (value > INT_MAX || value < INT_MIN) throw new EvaluationError('integer overflow');
  return value;
}

function uint(value: bigint): Uint {
  if (value > UINT_MAX || value < 0n) throw new EvaluationError('unsigned integer overflow');
  return new Uint(value);
}

function nonZero<T extends bigint>(value: T, what: string): T {
  if (value === 0n) throw new EvaluationError(what);
  return value;
}

const sum = ([a = 0, b = 0]: readonly number[]): number => a + b;
const both = { cost: (sizes: readonly number[]) => perCharacter(sum(sizes)), size: sum };
const least = { cost: ([a = 0, b = 0]: readonly number[]) => perCharacter(Math.min(a, b)) };

/**
 * Costs of a conversion that parses a text. Parsing takes as long as several ordinary steps; upstream estimates one.
 */
const reads = { cost: (): number => 6, estimate: (): number => 1 };

const MAX_TEXT = 10 * 1024 * 1024;

function joinedText(a: string, b: string): string {
  if (a.length + b.length > MAX_TEXT) throw new EvaluationError('the text is too large');
  return a + b;
}

/** Concatenates lists. Lists of x-kubernetes-list-type set or map are merged without duplicates. */
function added(a: List, b: List): List {
  if (!(a instanceof JsonList) || a.keyed() === undefined) return [...a, ...b];
  const merged = b instanceof JsonList ? a.merged(b) : undefined;
  if (merged !== undefined) return merged;
  const result = [...a];
  const seen = new Set(result.map(keyOf));
  for (const item of b) {
    const key = keyOf(item);
    // Only scalars have a key by which duplicates are found without comparing all pairs.
    if (key !== undefined && seen.has(key)) continue;
    seen.add(key);
    result.push(item);
  }
  return result;
}

const arithmetic: readonly Overload[] = [
  declareFunction('_+_(int, int): int', (a: bigint, b: bigint) => int(a + b)),
  declareFunction('_+_(uint, uint): uint', (a: Uint, b: Uint) => uint(a.value + b.value)),
  declareFunction('_+_(double, double): double', (a: number, b: number) => a + b),
  declareFunction('_+_(string, string): string', (a: string, b: string) => joinedText(a, b), both),
  declareFunction('_+_(bytes, bytes): bytes', (a: Uint8Array, b: Uint8Array) => Uint8Array.from([...a, ...b]), both),
  declareFunction('_+_(list<A>, list<A>): list<A>', added, { cost: sum, estimate: () => 1, size: sum }),
  declareFunction('_+_(timestamp, duration): timestamp', (a: Timestamp, b: Duration) => moment(a.ns + b.ns)),
  declareFunction('_+_(duration, timestamp): timestamp', (a: Duration, b: Timestamp) => moment(a.ns + b.ns)),
  declareFunction('_+_(duration, duration): duration', (a: Duration, b: Duration) => new Duration(int(a.ns + b.ns))),
  declareFunction('_-_(int, int): int', (a: bigint, b: bigint) => int(a - b)),
  declareFunction('_-_(uint, uint): uint', (a: Uint, b: Uint) => uint(a.value - b.value)),
  declareFunction('_-_(double, double): double', (a: number, b: number) => a - b),
  declareFunction(
    '_-_(timestamp, timestamp): duration',
    (a: Timestamp, b: Timestamp) => new Duration(int(a.ns - b.ns)),
  ),
  declareFunction('_-_(timestamp, duration): timestamp', (a: Timestamp, b: Duration) => moment(a.ns - b.ns)),
  declareFunction('_-_(duration, duration): duration', (a: Duration, b: Duration) => new Duration(int(a.ns - b.ns))),
  declareFunction('_*_(int, int): int', (a: bigint, b: bigint) => int(a * b)),
  declareFunction('_*_(uint, uint): uint', (a: Uint, b: Uint) => uint(a.value * b.value)),
  declareFunction('_*_(double, double): double', (a: number, b: number) => a * b),
  declareFunction('_/_(int, int): int', (a: bigint, b: bigint) => int(a / nonZero(b, 'division by zero'))),
  declareFunction('_/_(uint, uint): uint', (a: Uint, b: Uint) => uint(a.value / nonZero(b.value, 'division by zero'))),
  declareFunction('_/_(double, double): double', (a: number, b: number) => a / b),
  declareFunction('_%_(int, int): int', (a: bigint, b: bigint) => a % nonZero(b, 'modulus by zero')),
  declareFunction('_%_(uint, uint): uint', (a: Uint, b: Uint) => uint(a.value % nonZero(b.value, 'modulus by zero'))),
  declareFunction('-_(int): int', (a: bigint) => int(-a)),
  declareFunction('-_(double): double', (a: number) => -a),
  declareFunction('!_(bool): bool', (a: boolean) => !a),
];

function compareValues(a: Value, b: Value): number {
  const left = numericValue(a);
  const right = numericValue(b);
  if (left !== undefined && right !== undefined) return left < right ? -1 : left > right ? 1 : 0;
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b);
  if ((a instanceof Timestamp && b instanceof Timestamp) || (a instanceof Duration && b instanceof Duration)) {
    return a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : 0;
  }
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    for (let index = 0; index < Math.min(a.length, b.length); index++) {
      const difference = (a[index] ?? 0) - (b[index] ?? 0);
      if (difference !== 0) return difference;
    }
    return a.length - b.length;
  }
  throw new EvaluationError('no such overload');
}

/**
 * Compares texts by code point, which is the order of their UTF-8 bytes in Go. JavaScript's `<` compares UTF-16 units.
 */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  const left = a.charCodeAt(at);
  const right = b.charCodeAt(at);
  if (Number.isNaN(left) || Number.isNaN(right)) return a.length - b.length;
  const surrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdfff;
  return surrogate(left) === surrogate(right) ? left - right : surrogate(left) ? 1 : -1;
}

const ORDERED = ['bool', 'string', 'bytes', 'timestamp', 'duration'];
const NUMBERS = ['int', 'uint', 'double'];
const PAIRS: readonly (readonly [string, string])[] = [
  ...ORDERED.map((type) => [type, type] as const),
  ...NUMBERS.flatMap((left) => NUMBERS.map((right) => [left, right] as const)),
];

const order: readonly Overload[] = PAIRS.flatMap(([left, right]) => {
  const costs = left === 'string' || left === 'bytes' ? least : {};
  const with_ = (operator: string, test: (difference: number) => boolean): Overload => {
    const nan = (a: Value, b: Value): boolean => Number.isNaN(a) || Number.isNaN(b);
    return declareFunction(
      `${operator}(${left}, ${right}): bool`,
      (a: Value, b: Value) => !nan(a, b) && test(compareValues(a, b)),
      costs,
    );
  };
  return [
    with_('_<_', (difference) => difference < 0),
    with_('_<=_', (difference) => difference <= 0),
    with_('_>_', (difference) => difference > 0),
    with_('_>=_', (difference) => difference >= 0),
  ];
});

function toInt(value: number): bigint {
  if (!Number.isFinite(value) || value >= 2 ** 63 || value <= -(2 ** 63)) throw new EvaluationError('integer overflow');
  return BigInt(Math.trunc(value));
}

/** Parses a decimal integer. `to`: name of the target type for the error message. */
function parseInteger(text: string, to: 'int' | 'uint'): bigint {
  if (!/^[+-]?\d{1,20}$/.test(text)) throw new EvaluationError(`type conversion error from 'string' to '${to}'`);
  const value = BigInt(text);
  const [least, most] = to === 'int' ? [-(2n ** 63n), 2n ** 63n - 1n] : [0n, 2n ** 64n - 1n];
  if (value < least || value > most || (to === 'uint' && /^[+-]/.test(text)))
    throw new EvaluationError(`type conversion error from 'string' to '${to}'`);
  return value;
}

/** Maximum length of a text that is converted to a double. */
const MAX_NUMBER = 400;

function parseDouble(text: string): number {
  const wrong = new EvaluationError("type conversion error from 'string' to 'double'");
  if (
    text.length > MAX_NUMBER ||
    !/^[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|Inf(?:inity)?|NaN)$/i.test(text)
  ) {
    throw wrong;
  }
  const special = text.replace(/inf(?:inity)?/i, 'Infinity').replace(/nan/i, 'NaN');
  const value = Number(special);
  if (!Number.isFinite(value) && special === text) throw wrong;
  return value;
}

/**
 * Formats a double as Go does. `long`: numbers from 10⁶ on have an exponent, as in strconv with format `g`. Otherwise
 * the exponent begins at 10²¹, as in `%v` of fmt.
 */
export function formatDouble(value: number, { long = false }: { readonly long?: boolean } = {}): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const exponent = value === 0 ? 0 : Number(value.toExponential().split('e')[1]);
  // In Go, `%v` writes an exponent from 10²¹ on, and the format `g` from 10⁶ on.
  const text = exponent < -4 || exponent >= 21 || (exponent >= 6 && long) ? value.toExponential() : String(value);
  return text.replace(/e([+-])(\d)$/, 'e$10$2');
}

const decode = (bytes: Uint8Array): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new EvaluationError('invalid UTF-8 in bytes, cannot convert to string');
  }
};

const characters = (text: string): number => {
  let count = 0;
  for (const _character of text) count += 1;
  return count;
};

const one = { size: () => 1 };

const conversions: readonly Overload[] = [
  declareFunction('bool(bool): bool', (a: boolean) => a),
  declareFunction('bool(string): bool', (a: string) => {
    if (/^(?:1|t|T|TRUE|true|True)$/.test(a)) return true;
    if (/^(?:0|f|F|FALSE|false|False)$/.test(a)) return false;
    throw new EvaluationError("type conversion error from 'string' to 'bool'");
  }),
  declareFunction('int(int): int', (a: bigint) => a, one),
  declareFunction('int(uint): int', (a: Uint) => int(a.value), one),
  declareFunction('int(double): int', (a: number) => toInt(a), one),
  declareFunction('int(string): int', (a: string) => parseInteger(a, 'int'), one),
  declareFunction(
    'int(timestamp): int',
    (a: Timestamp) => (a.ns - (((a.ns % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n)) / 1_000_000_000n,
    one,
  ),
  declareFunction('int(duration): int', (a: Duration) => a.ns, one),
  declareFunction('uint(uint): uint', (a: Uint) => a),
  declareFunction('uint(int): uint', (a: bigint) => uint(a)),
  declareFunction('uint(double): uint', (a: number) =>
    uint(a < 0 ? -1n : BigInt(Math.trunc(Number.isFinite(a) ? a : 2 ** 65))),
  ),
  declareFunction('uint(string): uint', (a: string) => uint(parseInteger(a, 'uint'))),
  declareFunction('double(double): double', (a: number) => a),
  declareFunction('double(int): double', (a: bigint) => Number(a)),
  declareFunction('double(uint): double', (a: Uint) => Number(a.value)),
  declareFunction('double(string): double', (a: string) => parseDouble(a)),
  declareFunction('string(string): string', (a: string) => a),
  declareFunction('string(bool): string', (a: boolean) => String(a)),
  declareFunction('string(int): string', (a: bigint) => String(a)),
  declareFunction('string(uint): string', (a: Uint) => String(a.value)),
  declareFunction('string(double): string', (a: number) => formatDouble(a, { long: true })),
  declareFunction('string(bytes): string', (a: Uint8Array) => decode(a), { cost: ([a = 0]) => perCharacter(a) }),
  declareFunction('string(timestamp): string', (a: Timestamp) => formatTimestamp(a)),
  declareFunction('string(duration): string', (a: Duration) => formatDuration(a)),
  declareFunction('bytes(bytes): bytes', (a: Uint8Array) => a),
  declareFunction('bytes(string): bytes', (a: string) => new TextEncoder().encode(a), {
    cost: ([a = 0]) => perCharacter(a),
    size: ([a = 0]) => a * 4,
  }),
  declareFunction('timestamp(timestamp): timestamp', (a: Timestamp) => a),
  declareFunction('timestamp(string): timestamp', (a: string) => parseTimestamp(a), reads),
  declareFunction('timestamp(int): timestamp', (a: bigint) => moment(a * 1_000_000_000n)),
  declareFunction('duration(duration): duration', (a: Duration) => a),
  declareFunction('duration(string): duration', (a: string) => parseDuration(a), reads),
  declareFunction('dyn(A): dyn', (a: Value) => a, { size: ([a = 0]) => a }),
  declareFunction('type(A): type', (a: Value) => new TypeValue(typeOf(a))),
];

const sizes: readonly Overload[] = ['string', 'bytes', 'list<A>', 'map<A, B>'].flatMap((type) => {
  const size = (value: Value): Value => {
    if (typeof value === 'string') return BigInt(characters(value));
    return BigInt(value instanceof CelMap ? value.size : (value as List | Uint8Array).length);
  };
  // Counting the characters of a string or the keys of a map takes time in proportion to the size of the value.
  const walked = type === 'string' || type.startsWith('map');
  const costs = walked ? { cost: ([a = 0]: readonly number[]) => perCharacter(a), estimate: () => 1, ...one } : one;
  return [declareFunction(`size(${type}): int`, size, costs), declareFunction(`${type}.size(): int`, size, costs)];
});

const membership: readonly Overload[] = [
  declareFunction(
    '@in(A, list<A>): bool',
    (item: Value, list: List) => {
      for (const each of list) if (celEqual(item, each)) return true;
      return false;
    },
    { cost: ([, list = 0]) => list },
  ),
  declareFunction('@in(A, map<A, B>): bool', (item: Value, map: CelMap) => {
    const key = keyOf(item);
    return key !== undefined && map.get(key) !== undefined;
  }),
];

export const operators: readonly Overload[] = [...arithmetic, ...order, ...conversions, ...sizes, ...membership];

export { compareValues };
