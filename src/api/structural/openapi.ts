/**
 * What OpenAPI documents say of a custom resource. Version 2 knows fewer keywords; what it cannot say is left out, so
 * that old clients do not refuse what the server takes. Source:
 * k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder.
 */
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { isObject, type Schema, setFieldOf } from './schema.ts';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const API_VERSION =
  'APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources';
const KIND =
  'Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds';
/** Never published. */
const INTERNAL = ['$schema', 'definitions', 'id'];
const PRESERVE = 'x-kubernetes-preserve-unknown-fields';
/** Version 2 has no words for these, or its readers get them wrong. */
const NOT_IN_V2 = ['x-kubernetes-validations', 'nullable', 'oneOf', 'anyOf', 'not', 'default'];

/** The published schema of a whole resource. */
export function publishedSchema(schema: Schema | undefined, version: 2 | 3): JsonObject {
  // kubectl of version 2's days refuses every field beside those that are named, so of a resource that may have any
  // none is.
  if (schema === undefined || (version === 2 && schema.raw[PRESERVE] === true)) return { type: 'object' };
  const published = render(schema.raw, version);
  const properties = isObject(published['properties']) ? published['properties'] : {};
  const own = objectFields(version);
  return { ...published, type: 'object', properties: { ...own, ...without(properties, Object.keys(own)) } };
}

/** The fields that every object has, a whole resource or one inside another. */
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

/** A resource inside another one has the fields of every resource, and must say what it is. */
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
 * kubectl of those days takes types literally: what may be something else must not have one, and null is not there for
 * it.
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
