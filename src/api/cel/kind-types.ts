/**
 * CEL types of Kubernetes kinds. Structures are named after their path. Source:
 * k8s.io/apiserver/pkg/cel/common/schemas.go, and pkg/cel/openapi.
 */
import type { JsonObject, JsonValue } from '../meta/object.ts';
import type { SchemaNode } from '../schema/node.ts';
import { isObject } from '../structural/schema.ts';
import { escapeName } from './schema.ts';
import { BOOL, BYTES, DOUBLE, DYN, INT, listOf, mapOf, parseType, STRING, type Type } from './types.ts';

const TIMESTAMP = parseType('timestamp');
const DURATION = parseType('duration');

/**
 * CEL type of a schema node; undefined if expressions cannot access values of the node. Quantities have no CEL type,
 * because a published quantity may be a string or a number.
 */
export function typeOfNode(node: SchemaNode, name: string): Type | undefined {
  switch (node.kind) {
    case 'object':
      return structure(
        name,
        (field) => {
          const below = node.fields.get(field);
          return below === undefined ? undefined : typeOfNode(below, `${name}.${field}`);
        },
        () => node.fields.keys(),
      );
    case 'map':
      return mapTo(typeOfNode(node.items, `${name}.@elem`));
    case 'list':
      return listWith(typeOfNode(node.items, `${name}.@idx`));
    default:
      return SCALARS[node.type];
  }
}

const SCALARS: Readonly<Record<Extract<SchemaNode, { kind: 'scalar' }>['type'], Type | undefined>> = {
  string: STRING,
  int32: INT,
  int64: INT,
  number: DOUBLE,
  boolean: BOOL,
  byte: BYTES,
  'date-time': TIMESTAMP,
  'date-time-micro': TIMESTAMP,
  'int-or-string': DYN,
  quantity: undefined,
  any: DYN,
};

const FORMATS: Readonly<Record<string, Type>> = {
  date: TIMESTAMP,
  'date-time': TIMESTAMP,
  duration: DURATION,
  byte: BYTES,
};

/**
 * CEL type of a published schema. The only reference in the schema is that to metadata, whose type is `metadata`.
 * Unknown fields that the server preserves are not part of the type.
 */
export function typeOfPublished(schema: JsonObject, name: string, metadata: SchemaNode): Type | undefined {
  if (schema['x-kubernetes-int-or-string'] === true) return DYN;
  const { type, items, properties, additionalProperties, format } = schema;
  const below = (value: JsonValue | undefined, at: string): Type | undefined => {
    if (!isObject(value)) return undefined;
    return '$ref' in value || ('allOf' in value && value['type'] === undefined)
      ? typeOfNode(metadata, at)
      : typeOfPublished(value, at, metadata);
  };
  switch (type) {
    case 'array':
      return listWith(below(items, `${name}.@idx`));
    case 'object': {
      if (isObject(additionalProperties)) return mapTo(below(additionalProperties, `${name}.@elem`));
      const fields = isObject(properties) ? properties : {};
      return structure(
        name,
        (field) => (Object.hasOwn(fields, field) ? below(fields[field], `${name}.${field}`) : undefined),
        () => Object.keys(fields),
      );
    }
    case 'string':
      return FORMATS[String(format)] ?? STRING;
    case 'integer':
      return INT;
    case 'number':
      return DOUBLE;
    case 'boolean':
      return BOOL;
    default:
      return undefined;
  }
}

const listWith = (of: Type | undefined): Type | undefined => (of === undefined ? undefined : listOf(of));
const mapTo = (value: Type | undefined): Type | undefined => (value === undefined ? undefined : mapOf(STRING, value));

const structure = (name: string, typeOf: (field: string) => Type | undefined, names: () => Iterable<string>): Type => ({
  kind: 'object',
  name,
  fields: new Fields(typeOf, names),
});

/**
 * Fields of a structure, created on access because types may be recursive. A field is found by its own name and by its
 * escaped name.
 */
class Fields extends Map<string, Type> {
  readonly #typeOf: (field: string) => Type | undefined;
  readonly #names: () => Iterable<string>;
  #escaped: ReadonlyMap<string, string> | undefined;

  constructor(typeOf: (field: string) => Type | undefined, names: () => Iterable<string>) {
    super();
    this.#typeOf = typeOf;
    this.#names = names;
  }

  override get(name: string): Type | undefined {
    const known = super.get(name);
    if (known !== undefined) return known;
    const type = this.#typeOf(name) ?? this.#byEscapedName(name);
    if (type !== undefined) super.set(name, type);
    return type;
  }

  #byEscapedName(name: string): Type | undefined {
    if (!name.includes('__')) return undefined;
    this.#escaped ??= new Map(Array.from(this.#names(), (key) => [escapeName(key) ?? key, key]));
    const field = this.#escaped.get(name);
    return field === undefined ? undefined : this.#typeOf(field);
  }
}
