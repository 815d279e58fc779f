/**
 * CEL values. Booleans, strings and null are JavaScript values, `int` is a bigint, `double` a number; other types have
 * classes.
 */

export type Value =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint
  | Uint8Array
  | List
  | CelMap
  | Timestamp
  | Duration
  | TypeValue
  | Optional
  | Opaque;

/** Error during evaluation. `&&` and `||` may absorb it. */
export class EvaluationError extends Error {
  override readonly name: string = 'EvaluationError';
}

/** Thrown when the cost limit is exceeded. No operator absorbs this error. */
export class BudgetError extends Error {
  override readonly name = 'BudgetError';
  constructor() {
    super('operation cancelled: actual cost limit exceeded');
  }
}

export class Uint {
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}

export interface List extends Iterable<Value> {
  readonly length: number;
  at(index: number): Value | undefined;
}

export type MapKey = string | bigint | boolean;

export abstract class CelMap {
  abstract readonly size: number;
  abstract get(key: MapKey): Value | undefined;
  abstract keys(): Iterable<MapKey>;
}

export class EntryMap extends CelMap {
  readonly #entries: ReadonlyMap<MapKey, Value>;
  constructor(entries: ReadonlyMap<MapKey, Value>) {
    super();
    this.#entries = entries;
  }
  get size(): number {
    return this.#entries.size;
  }
  get(key: MapKey): Value | undefined {
    return this.#entries.get(key);
  }
  keys(): Iterable<MapKey> {
    return this.#entries.keys();
  }
}

/** A message constructed by an expression. Messages of different types are never equal. */
export class StructValue extends EntryMap {
  readonly typeName: string;
  constructor(typeName: string, fields: ReadonlyMap<string, Value>) {
    super(fields);
    this.typeName = typeName;
  }
}

/** A list whose values are created on access. */
export abstract class LazyList implements List {
  abstract readonly length: number;
  abstract at(index: number): Value | undefined;
  abstract [Symbol.iterator](): Iterator<Value>;
}

export class Timestamp {
  /** Nanoseconds since 1970. */
  readonly ns: bigint;
  constructor(ns: bigint) {
    this.ns = ns;
  }
}

export class Duration {
  readonly ns: bigint;
  constructor(ns: bigint) {
    this.ns = ns;
  }
}

export class TypeValue {
  readonly type: string;
  constructor(type: string) {
    this.type = type;
  }
}

export class Optional {
  static readonly NONE = new Optional(undefined);
  readonly value: Value | undefined;
  constructor(value: Value | undefined) {
    this.value = value;
  }
}

/** Value of an extension library, such as `kubernetes.Quantity` or `net.IP`. */
export class Opaque {
  readonly type: string;
  readonly value: unknown;
  /** Values of one type are equal if their identity is equal. */
  readonly identity: string;
  constructor(type: string, value: unknown, identity: string) {
    this.type = type;
    this.value = value;
    this.identity = identity;
  }
}

export const isList = (value: Value): value is List => Array.isArray(value) || value instanceof LazyList;

/** Type name of a value, for `type()` and the choice of overloads. */
export function typeOf(value: Value): string {
  switch (typeof value) {
    case 'boolean':
      return 'bool';
    case 'bigint':
      return 'int';
    case 'number':
      return 'double';
    case 'string':
      return 'string';
    default:
      if (value === null) return 'null';
      if (value instanceof StructValue) return value.typeName;
      if (value instanceof CelMap) return 'map';
      if (isList(value)) return 'list';
      if (value instanceof Uint) return 'uint';
      if (value instanceof Uint8Array) return 'bytes';
      if (value instanceof Timestamp) return 'timestamp';
      if (value instanceof Duration) return 'duration';
      if (value instanceof Optional) return 'optional';
      if (value instanceof TypeValue) return 'type';
      return value.type;
  }
}

/** Number of characters, bytes or elements, for cost. 1 for other values. */
export function sizeOf(value: Value): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 1;
  if (value instanceof CelMap) return value.size;
  if (isList(value) || value instanceof Uint8Array) return value.length;
  return 1;
}

/** Key under which a map stores a value. Undefined if the value cannot be a key. */
export function keyOf(value: Value): MapKey | undefined {
  if (typeof value === 'string' || typeof value === 'bigint' || typeof value === 'boolean') return value;
  if (value instanceof Uint) return value.value;
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : undefined;
}

export function numericValue(value: Value): bigint | number | undefined {
  if (typeof value === 'bigint' || typeof value === 'number') return value;
  return value instanceof Uint ? value.value : undefined;
}

/** Key of a map literal. Throws EvaluationError if the value cannot be a key. */
export function mapKey(value: Value): MapKey {
  const key = typeof value === 'number' ? undefined : keyOf(value);
  if (key === undefined) throw new EvaluationError('unsupported key type');
  return key;
}
