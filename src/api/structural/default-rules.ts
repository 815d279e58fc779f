/**
 * Validation of defaults in a schema: a default must be valid under the schema itself. Source:
 * k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go.
 */
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { validateEmbedded } from './embedded.ts';
import { pruneValue } from './prune.ts';
import { fieldOf, isObject, type Schema, setFieldOf } from './schema.ts';
import { validateValue } from './validate.ts';

/** Fields that every embedded resource has, whatever its schema contains. */
const TYPE_AND_METADATA: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/**
 * Errors for defaults in the schema. Another check forbids defaults of the resource's own metadata. Defaults below
 * `additionalProperties` are not checked. `inMeta`: the schema is within the metadata of an embedded resource, where
 * unknown fields are pruned silently.
 */
export function defaultErrors(schema: Schema, path: string, inMeta = false): FieldError[] {
  const found: FieldError[] = [];
  const inside = inMeta && !schema.embedded;
  if (schema.default !== undefined) found.push(...errorsOf(schema, schema.default, `${path}.default`, inside));
  if (schema.items !== undefined) found.push(...defaultErrors(schema.items, `${path}.items`, inside));
  for (const [name, property] of schema.properties) {
    const below = inside || (schema.embedded && TYPE_AND_METADATA.has(name));
    found.push(...defaultErrors(property, `${path}.properties[${name}]`, below));
  }
  return found;
}

function errorsOf(schema: Schema, given: JsonValue, at: string, inMeta: boolean): FieldError[] {
  const value: JsonValue = structuredClone(given);
  const found: FieldError[] = [];
  if (!inMeta && pruneValue(schema, value).length > 0)
    found.push(fieldError.invalid(at, given, 'must not have unknown fields'));
  const filled = withNestedDefaults(schema, structuredClone(given));
  const embedded = isObject(filled) ? validateEmbedded(rootOf(schema), { value: filled }) : [];
  const below = (error: FieldError): FieldError => {
    const field = error.field.replace(/^value\b\.?/, '');
    return { ...error, field: field === '' || field === '<nil>' ? at : `${at}.${field}` };
  };
  found.push(...(embedded.length > 0 ? embedded : validateValue(schema, filled)).map(below));
  return found;
}

/** Returns a schema with `schema` as its only field, because embedded resources are only searched below the root. */
function rootOf(schema: Schema): Schema {
  return { ...schema, properties: new Map([['value', schema]]), additional: undefined, items: undefined };
}

/** Adds defaults of nested fields that are missing in a default. */
function withNestedDefaults(schema: Schema, value: JsonValue): JsonValue {
  if (!isObject(value)) return value;
  const object: JsonObject = value;
  for (const [name, property] of schema.properties) {
    const now = fieldOf(object, name);
    if (now === undefined && property.default !== undefined)
      setFieldOf(object, name, structuredClone(property.default));
    else if (now !== undefined) withNestedDefaults(property, now);
  }
  return object;
}
