/** JSON documents as CEL values, converted lazily. */
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { CelMap, LazyList, type MapKey, type Value } from './values.ts';

/** Reads parts of a document. Readers made from a schema distinguish integers from doubles and escape names. */
export interface JsonReader {
  field(name: string): { readonly key: string; readonly reader: JsonReader } | undefined;
  /** Names under which expressions access the fields of `object`. */
  names(object: JsonObject): string[];
  readonly items: JsonReader;
  /** True if integers are read as doubles. */
  readonly double: boolean;
  /** True for structures, whose fields are selected; false for maps, whose keys are looked up. */
  readonly structure: boolean;
  /**
   * How list items are identified. Undefined: by index. Empty list: by value. Otherwise: by the values of these fields.
   */
  readonly listKeys: readonly string[] | undefined;
  /** Converts a string according to its format. */
  text(value: string): Value;
}

/** Reader of documents without a schema. */
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
      // An unsafe whole number was written as a double, because the JSON parser reads large integers as BigInt.
      return reader.double || !Number.isSafeInteger(value) ? value : BigInt(value);
    case 'bigint':
      return reader.double ? Number(value) : value;
    case 'boolean':
      return value;
    default:
      if (value === null) return null;
      return Array.isArray(value) ? new JsonList(value, reader) : new JsonMap(value, reader);
  }
}

export class JsonList extends LazyList {
  readonly #items: readonly JsonValue[];
  readonly #reader: JsonReader;
  constructor(items: readonly JsonValue[], reader: JsonReader) {
    super();
    this.#items = items;
    this.#reader = reader;
  }
  get length(): number {
    return this.#items.length;
  }
  /**
   * Items by identity, as `listKeys` of the reader defines it. Undefined for lists whose items are identified by index.
   */
  keyed(): Map<string, JsonValue> | undefined {
    const { listKeys } = this.#reader;
    if (listKeys === undefined) return undefined;
    return new Map(this.#items.map((item) => [identity(item, listKeys), item]));
  }
  /**
   * Merges another keyed list into this one. Items of this list keep their position. In a list of type map, an item of
   * the other list replaces the item with the same key.
   */
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
  override *[Symbol.iterator](): Iterator<Value> {
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
    // A null field of a structure counts as absent.
    if (value === undefined || (value === null && this.#reader.structure)) return undefined;
    return fromJson(value, field.reader);
  }
  keys(): Iterable<MapKey> {
    return this.#reader.names(this.#object);
  }
}
