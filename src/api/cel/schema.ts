/**
 * CEL types of structural schemas, with the maximum sizes of values. Source: k8s.io/apiserver/pkg/cel/common/schemas.go
 * (types), pkg/cel/escaping.go (names), pkg/cel/limits.go (sizes).
 */
import type { JsonObject } from '../meta/object.ts';
import type { Schema } from '../structural/schema.ts';
import { ANY_READER, type JsonReader } from './documents.ts';
import { parseDuration, parseTimestamp } from './library/time.ts';
import { BOOL, BYTES, DOUBLE, DYN, INT, listOf, mapOf, STRING, type Type } from './types.ts';
import type { Value } from './values.ts';

/** Maximum size of a document in bytes. It limits all values that the schema does not limit. */
const MAX_REQUEST = 3 * 1024 * 1024;
/** Maximum size of a string, without its quotes. */
const MAX_TEXT = MAX_REQUEST - 2;
/** Maximum number of bytes per character; length limits are in characters. */
const MAX_BYTES = 4;

const KEYWORDS: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);
/** Keywords that cannot be field names even after a dot. */
const LITERALS: ReadonlySet<string> = new Set(['true', 'false', 'null', 'in']);
/** As upstream, numbers and booleans have the size 0, and times have the size of their text form. */
const [SMALL_INT, SMALL_DOUBLE, SMALL_BOOL] = [INT, DOUBLE, BOOL].map((type): Type => ({ ...type, max: 0 })) as [
  Type,
  Type,
  Type,
];
const DATE: Type = { kind: 'timestamp', max: 12 };
const TIMESTAMP: Type = { kind: 'timestamp', max: 32 };
const DURATION: Type = { kind: 'duration', max: 32 };

/** Name by which rules refer to a property; undefined if rules cannot refer to it. */
export function escapeName(name: string): string | undefined {
  if (!/^[a-zA-Z_./-][a-zA-Z0-9_./-]*$/.test(name)) return undefined;
  if (KEYWORDS.has(name)) return `__${name}__`;
  return name.replaceAll(/__|\.|-|\//g, (part) => ESCAPED[part] ?? part);
}

const ESCAPED: Readonly<Record<string, string>> = {
  __: '__underscores__',
  '.': '__dot__',
  '-': '__dash__',
  '/': '__slash__',
};

/** CEL type of a schema's values. Undefined if rules cannot access them. */
export function typeOfSchema(schema: Schema, resource: boolean): Type | undefined {
  if (schema.intOrString) return { ...DYN, max: MAX_TEXT };
  switch (schema.type) {
    case 'string':
      return stringType(schema);
    case 'integer':
      return SMALL_INT;
    case 'number':
      return SMALL_DOUBLE;
    case 'boolean':
      return SMALL_BOOL;
    case 'array': {
      const of = schema.items === undefined ? undefined : typeOfSchema(schema.items, schema.items.embedded);
      return of === undefined ? undefined : listOf(of, maxItems(schema));
    }
    case 'object': {
      if (typeof schema.additional === 'object') {
        const value = typeOfSchema(schema.additional, schema.additional.embedded);
        return value === undefined ? undefined : mapOf({ ...STRING, max: 0 }, value, maxProperties(schema));
      }
      return objectType(schema, resource || schema.embedded);
    }
    default:
      return undefined;
  }
}

function stringType(schema: Schema): Type {
  switch (schema.format) {
    case 'date':
      return DATE;
    case 'date-time':
      return TIMESTAMP;
    case 'duration':
      return DURATION;
    case 'byte':
      return { ...BYTES, max: schema.maxLength ?? MAX_TEXT };
    default: {
      const longest = schema.enum?.reduce<number>(
        (max, each) => Math.max(max, typeof each === 'string' ? each.length : 0),
        0,
      );
      return { ...STRING, max: schema.maxLength === undefined ? (longest ?? MAX_TEXT) : schema.maxLength * MAX_BYTES };
    }
  }
}

function objectType(schema: Schema, resource: boolean): Type {
  return { kind: 'object', name: 'object', fields: new LazyFields(schema, resource), max: 0 };
}

const METADATA: Type = {
  kind: 'object',
  name: 'object',
  fields: new Map<string, Type>([
    ['name', { ...STRING, max: 253 }],
    ['generateName', { ...STRING, max: 253 }],
  ]),
};

/** Fields by their escaped names. Each field is created on access, because rules use few fields of a large schema. */
class LazyFields extends Map<string, Type> {
  readonly #schema: Schema;
  readonly #resource: boolean;
  readonly #names: Map<string, string>;

  constructor(schema: Schema, resource: boolean) {
    super();
    this.#schema = schema;
    this.#resource = resource;
    this.#names = escapedNames(schema);
  }

  override get(name: string): Type | undefined {
    const known = super.get(name);
    if (known !== undefined) return known;
    if (this.#resource && name === 'metadata' && !describesMetadata(this.#schema)) return METADATA;
    if (this.#resource && (name === 'apiVersion' || name === 'kind')) return { ...STRING, max: 253 };
    // Since 1.32, a keyword after a dot needs no escape.
    const direct = KEYWORDS.has(name) && !LITERALS.has(name) ? name : '';
    const property = this.#schema.properties.get(this.#names.get(name) ?? direct);
    const type = property === undefined ? undefined : typeOfSchema(property, property.embedded);
    if (type !== undefined) super.set(name, type);
    return type;
  }
}

/** Reports whether the schema itself declares the kind, apiVersion, name and generateName of the resource. */
function describesMetadata({ properties }: Schema): boolean {
  const isText = (of: Schema['properties'], name: string): boolean => of.get(name)?.type === 'string';
  const metadata = properties.get('metadata')?.properties;
  return (
    metadata !== undefined &&
    isText(properties, 'kind') &&
    isText(properties, 'apiVersion') &&
    isText(metadata, 'name') &&
    isText(metadata, 'generateName')
  );
}

function escapedNames(schema: Schema): Map<string, string> {
  const names = new Map<string, string>();
  for (const name of schema.properties.keys()) {
    const escaped = escapeName(name);
    if (escaped !== undefined) names.set(escaped, name);
  }
  return names;
}

/** Minimum size of a value as JSON, in bytes. */
function leastBytes(schema: Schema): number {
  switch (schema.type) {
    case 'boolean':
      return 4;
    case 'integer':
    case 'number':
      return 1;
    case 'object': {
      let bytes = 2;
      for (const name of schema.required) {
        const property = schema.properties.get(name);
        bytes += name.length + 4 + (property === undefined ? 1 : leastBytes(property));
      }
      return bytes;
    }
    case 'string':
      return 2 + (schema.minLength ?? 0);
    default:
      return 2;
  }
}

export function maxItems(schema: Schema): number {
  return (
    schema.maxItems ?? Math.floor((MAX_REQUEST - 2) / ((schema.items === undefined ? 1 : leastBytes(schema.items)) + 1))
  );
}

export function maxProperties(schema: Schema): number {
  if (schema.maxProperties !== undefined) return schema.maxProperties;
  return Math.floor(
    (MAX_REQUEST - 2) / ((typeof schema.additional === 'object' ? leastBytes(schema.additional) : 1) + 6),
  );
}

const readers = new WeakMap<Schema, JsonReader>();

/** Reader of documents with this schema. */
export function readerOf(schema: Schema, resource: boolean): JsonReader {
  const known = readers.get(schema);
  if (known !== undefined) return known;
  const reader = new SchemaReader(schema, resource || schema.embedded);
  readers.set(schema, reader);
  return reader;
}

class SchemaReader implements JsonReader {
  readonly structure: boolean;
  readonly double: boolean;
  readonly #schema: Schema;
  readonly #resource: boolean;
  #names: Map<string, string> | undefined;

  constructor(schema: Schema, resource: boolean) {
    this.#schema = schema;
    this.#resource = resource;
    this.double = schema.type === 'number';
    this.structure = schema.type === 'object' && typeof schema.additional !== 'object';
  }

  get items(): JsonReader {
    const { items } = this.#schema;
    return items === undefined ? ANY_READER : readerOf(items, items.embedded);
  }

  #known(): Map<string, string> {
    this.#names ??= escapedNames(this.#schema);
    return this.#names;
  }

  get listKeys(): readonly string[] | undefined {
    const { listType, listMapKeys } = this.#schema;
    return listType === 'set' ? [] : listType === 'map' ? listMapKeys : undefined;
  }

  field(name: string): { readonly key: string; readonly reader: JsonReader } | undefined {
    const { additional, properties } = this.#schema;
    if (typeof additional === 'object') return { key: name, reader: readerOf(additional, additional.embedded) };
    const key = this.#known().get(name) ?? name;
    const property = properties.get(key);
    if (this.#resource && (key === 'metadata' || key === 'apiVersion' || key === 'kind'))
      return { key, reader: ANY_READER };
    return property === undefined ? undefined : { key, reader: readerOf(property, property.embedded) };
  }

  names(object: JsonObject): string[] {
    if (!this.structure) return Object.keys(object);
    return Object.keys(object).flatMap((name) => {
      const escaped = escapeName(name);
      return escaped !== undefined && object[name] !== null && this.#schema.properties.has(name) ? [escaped] : [];
    });
  }

  text(value: string): Value {
    if (this.#schema.intOrString || this.#schema.type !== 'string') return value;
    switch (this.#schema.format) {
      case 'date':
        return parseTimestamp(`${value}T00:00:00Z`);
      case 'date-time':
        return parseTimestamp(value);
      case 'duration':
        return parseDuration(value);
      case 'byte':
        return Uint8Array.from(atob(value), (char) => char.charCodeAt(0));
      default:
        return value;
    }
  }
}
