/**
 * CEL's values: booleans, strings and null are themselves; `int` is a bigint, `double` a number; bytes, lists and maps have forms of
 * their own, and documents are looked into only where an expression looks.
 */
import type { JsonObject, JsonValue } from '../../api/meta/object.ts';

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

/** What goes wrong while an expression is worked out; `&&` and `||` may still know their answer. */
export class EvaluationError extends Error {
  override readonly name: string = 'EvaluationError';
}

/** The expression costs more than it may. Nothing absorbs it. */
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

/** Reads the parts of a document; schemas make better ones, which know an integer from a double and escape names. */
export interface JsonReader {
  field(name: string): { readonly key: string; readonly reader: JsonReader } | undefined;
  /** Names of the fields of `object` as expressions call them. */
  names(object: JsonObject): string[];
  readonly items: JsonReader;
  /** True where integers are doubles all the same. */
  readonly double: boolean;
  /** Whether the object is a structure: its fields are selected, not looked up. */
  readonly structure: boolean;
  /** What identifies the items of a list. Undefined: their places; none: their values; else these fields. */
  readonly listKeys: readonly string[] | undefined;
  /** Turns a string into what its format says it is. */
  text(value: string): Value;
}

/** Documents without a schema. */
export const ANY_READER: JsonReader = {
  field: (name) => ({ key: name, reader: ANY_READER }),
  names: (object) => Object.keys(object),
  get items() {
    return ANY_READER;
  },
  double: false,
  listKeys: undefined,
  structure: false,
  text: (value) => value,
};

export function fromJson(value: JsonValue, reader: JsonReader): Value {
  switch (typeof value) {
    case 'string':
      return reader.text(value);
    case 'number':
      return reader.double || !Number.isInteger(value) ? value : BigInt(value);
    case 'boolean':
      return value;
    default:
      if (value === null) return null;
      return Array.isArray(value) ? new JsonList(value, reader) : new JsonMap(value, reader);
  }
}

export class JsonList implements List {
  readonly #items: readonly JsonValue[];
  readonly #reader: JsonReader;
  constructor(items: readonly JsonValue[], reader: JsonReader) {
    this.#items = items;
    this.#reader = reader;
  }
  get length(): number {
    return this.#items.length;
  }
  /** The items by what identifies them; undefined where their places do. */
  keyed(): Map<string, JsonValue> | undefined {
    const { listKeys } = this.#reader;
    if (listKeys === undefined) return undefined;
    return new Map(this.#items.map((item) => [identity(item, listKeys), item]));
  }
  /** This list with the items of another: those it has keep their places, and in maps take the other's contents. */
  merged(other: JsonList): JsonList | undefined {
    const ours = this.keyed();
    const theirs = other.keyed();
    if (ours === undefined || theirs === undefined) return undefined;
    return new JsonList([...new Map([...ours, ...theirs]).values()], this.#reader);
  }
  at(index: number): Value | undefined {
    const item = this.#items[index];
    return item === undefined ? undefined : fromJson(item, this.#reader.items);
  }
  *[Symbol.iterator](): Iterator<Value> {
    for (const item of this.#items) yield fromJson(item, this.#reader.items);
  }
}

function identity(item: JsonValue, keys: readonly string[]): string {
  if (keys.length === 0 || typeof item !== 'object' || item === null || Array.isArray(item))
    return JSON.stringify(item);
  return JSON.stringify(keys.map((key) => (Object.hasOwn(item, key) ? item[key] : null)));
}

export class JsonMap extends CelMap {
  readonly #object: JsonObject;
  readonly #reader: JsonReader;
  constructor(object: JsonObject, reader: JsonReader) {
    super();
    this.#object = object;
    this.#reader = reader;
  }
  get size(): number {
    return this.#reader.names(this.#object).length;
  }
  get(key: MapKey): Value | undefined {
    if (typeof key !== 'string') return undefined;
    const field = this.#reader.field(key);
    if (field === undefined || !Object.hasOwn(this.#object, field.key)) return undefined;
    const value = this.#object[field.key];
    // A field of a structure that is null is not there.
    if (value === undefined || (value === null && this.#reader.structure)) return undefined;
    return fromJson(value, field.reader);
  }
  keys(): Iterable<MapKey> {
    return this.#reader.names(this.#object);
  }
}

export class Timestamp {
  /** Since 1970. */
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

/** Values of the extension libraries: `kubernetes.Quantity`, `net.IP` … */
export class Opaque {
  readonly type: string;
  readonly value: unknown;
  /** Equal texts are equal values of one type. */
  readonly identity: string;
  constructor(type: string, value: unknown, identity: string) {
    this.type = type;
    this.value = value;
    this.identity = identity;
  }
}

export const isList = (value: Value): value is List => Array.isArray(value) || value instanceof JsonList;

/** The name of a value's type, as `type()` tells it and overloads are chosen by. */
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

/** Characters, bytes or elements; 1 for everything else. For the cost of what is done with it. */
export function sizeOf(value: Value): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 1;
  if (value instanceof CelMap) return value.size;
  if (isList(value) || value instanceof Uint8Array) return value.length;
  return 1;
}

/** The form of a value under which maps keep it; undefined when it cannot be a key. */
export function keyOf(value: Value): MapKey | undefined {
  if (typeof value === 'string' || typeof value === 'bigint' || typeof value === 'boolean') return value;
  if (value instanceof Uint) return value.value;
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : undefined;
}

export function equal(a: Value, b: Value): boolean {
  if (a === b) return true;
  const left = numeric(a);
  if (left !== undefined) {
    const right = numeric(b);
    // biome-ignore lint/suspicious/noDoubleEquals: an int and a double of one value are equal in CEL.
    return right !== undefined && left == right;
  }
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (a instanceof CelMap) return b instanceof CelMap && equalMaps(a, b);
  if (isList(a)) return isList(b) && equalLists(a, b);
  if (a instanceof Uint8Array)
    return b instanceof Uint8Array && a.length === b.length && a.every((byte, index) => byte === b[index]);
  if (a instanceof Timestamp) return b instanceof Timestamp && a.ns === b.ns;
  if (a instanceof Duration) return b instanceof Duration && a.ns === b.ns;
  if (a instanceof TypeValue) return b instanceof TypeValue && a.type === b.type;
  if (a instanceof Optional) {
    if (!(b instanceof Optional)) return false;
    return a.value === undefined || b.value === undefined ? a.value === b.value : equal(a.value, b.value);
  }
  return a instanceof Opaque && b instanceof Opaque && a.type === b.type && a.identity === b.identity;
}

export function numeric(value: Value): bigint | number | undefined {
  if (typeof value === 'bigint' || typeof value === 'number') return value;
  return value instanceof Uint ? value.value : undefined;
}

function equalLists(a: List, b: List): boolean {
  if (a.length !== b.length) return false;
  const ours = a instanceof JsonList ? a.keyed() : undefined;
  const theirs = b instanceof JsonList ? b.keyed() : undefined;
  if (ours !== undefined && theirs !== undefined) {
    // The order of sets and maps says nothing.
    for (const [key, item] of ours) {
      const other = theirs.get(key);
      if (other === undefined || !equal(fromJson(item, ANY_READER), fromJson(other, ANY_READER))) return false;
    }
    return true;
  }
  for (let index = 0; index < a.length; index++) if (!equal(a.at(index) ?? null, b.at(index) ?? null)) return false;
  return true;
}

function equalMaps(a: CelMap, b: CelMap): boolean {
  if (a.size !== b.size) return false;
  for (const key of a.keys()) {
    const left = a.get(key);
    const right = b.get(key);
    if (left === undefined || right === undefined) {
      if (left !== right) return false;
    } else if (!equal(left, right)) return false;
  }
  return true;
}

/** A key of a map that is being made. Throws EvaluationError for what cannot be one. */
export function mapKey(value: Value): MapKey {
  const key = typeof value === 'number' ? undefined : keyOf(value);
  if (key === undefined) throw new EvaluationError('unsupported key type');
  return key;
}
