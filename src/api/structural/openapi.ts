/**
 * OpenAPI documents of custom resources. Version 2 supports fewer keywords; unsupported ones are dropped, so that old
 * clients do not reject objects that the server accepts. Source:
 * k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder.
 */
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { isObject, type Schema, setFieldOf } from './schema.ts';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const API_VERSION =
  'APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources';
const KIND =
  'Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds';
/** Keywords that are never published. */
const INTERNAL = ['$schema', 'definitions', 'id'];
const PRESERVE = 'x-kubernetes-preserve-unknown-fields';
/** Keywords that version 2 lacks or that its clients misinterpret. */
const NOT_IN_V2 = ['x-kubernetes-validations', 'nullable', 'oneOf', 'anyOf', 'not', 'default'];

export function publishedSchema(schema: Schema | undefined, version: 2 | 3): JsonObject {
  // A kubectl that reads version 2 rejects every field that is not listed, so the schema of a resource with arbitrary
  // fields lists none.
  if (schema === undefined || (version === 2 && schema.raw[PRESERVE] === true)) return { type: 'object' };
  const published = render(schema.raw, version);
  const properties = isObject(published['properties']) ? published['properties'] : {};
  const own = objectFields(version);
  return { ...published, type: 'object', properties: { ...own, ...without(properties, Object.keys(own)) } };
}

/** Fields of every object: apiVersion, kind and metadata. */
function objectFields(version: 2 | 3): JsonObject {
  const metadata = version === 2 ? `#/definitions/${META}` : `#/components/schemas/${META}`;
  const description =
    "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
  return {
    apiVersion: { description: API_VERSION, type: 'string' },
    kind: { description: KIND, type: 'string' },
    metadata:
      version === 2 ? { description, $ref: metadata } : { description, allOf: [{ $ref: metadata }], default: {} },
  };
}

function without(object: JsonObject, names: readonly string[]): JsonObject {
  const rest: JsonObject = {};
  for (const name of Object.keys(object)) if (!names.includes(name)) setFieldOf(rest, name, object[name] ?? null);
  return rest;
}

function render(raw: JsonObject, version: 2 | 3): JsonObject {
  const result: JsonObject = {};
  for (const key of Object.keys(raw)) {
    const value = raw[key];
    if (value === undefined || value === null || INTERNAL.includes(key)) continue;
    if (version === 2 && NOT_IN_V2.includes(key)) continue;
    result[key] = renderKeyword(key, value, version);
  }
  if (version === 2) forOldReaders(raw, result);
  if (raw['x-kubernetes-embedded-resource'] === true && !(version === 2 && raw[PRESERVE] === true))
    addObjectFields(result, version);
  return result;
}

/** Adds the fields of every object to an embedded resource and makes apiVersion and kind required. */
function addObjectFields(result: JsonObject, version: 2 | 3): void {
  const own = objectFields(version);
  const properties = isObject(result['properties']) ? result['properties'] : {};
  const required = Array.isArray(result['required']) ? result['required'] : [];
  result['properties'] = { ...own, ...without(properties, Object.keys(own)) };
  result['required'] = [...required, ...['kind', 'apiVersion'].filter((each) => !required.includes(each))];
}

function renderKeyword(key: string, value: JsonValue, version: 2 | 3): JsonValue {
  switch (key) {
    case 'properties': {
      const properties: JsonObject = {};
      if (isObject(value))
        for (const name of Object.keys(value)) setFieldOf(properties, name, sub(value[name] ?? null, version));
      return properties;
    }
    case 'items':
    case 'additionalProperties':
    case 'not':
      return sub(value, version);
    case 'allOf':
    case 'anyOf':
    case 'oneOf':
      return Array.isArray(value) ? value.map((each) => sub(each, version)) : value;
    default:
      return value;
  }
}

function sub(value: JsonValue, version: 2 | 3): JsonValue {
  return isObject(value) ? render(value, version) : value;
}

/**
 * Removes types that an old kubectl would enforce literally, although the value may have another type or may be null.
 */
function forOldReaders(raw: JsonObject, result: JsonObject): void {
  if (raw['nullable'] === true || raw['x-kubernetes-int-or-string'] === true) {
    for (const key of ['type', 'items', 'properties', 'format', 'enum', 'allOf']) delete result[key];
  }
  if (raw[PRESERVE] === true) {
    delete result['items'];
    delete result['properties'];
    if (result['type'] === 'object') delete result['type'];
  }
  if (result['type'] === 'array' && result['items'] === undefined) delete result['type'];
  delete result['allOf'];
  if (!Array.isArray(result['required'])) return;
  const properties = isObject(raw['properties']) ? raw['properties'] : {};
  const required = isNullable(raw['additionalProperties'])
    ? []
    : result['required'].filter(
        (name) => !isNullable(Object.hasOwn(properties, String(name)) ? properties[String(name)] : null),
      );
  if (required.length === 0) delete result['required'];
  else result['required'] = required;
}

const isNullable = (schema: JsonValue | undefined): boolean => isObject(schema) && schema['nullable'] === true;
