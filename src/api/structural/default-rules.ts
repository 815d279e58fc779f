/**
 * Defaults must be what the schema itself would let through. Source:
 * k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go.
 */
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { validateEmbedded } from './embedded.ts';
import { pruneValue } from './prune.ts';
import { fieldOf, isObject, type Schema, setFieldOf } from './schema.ts';
import { validateValue } from './validate.ts';

/** What every embedded resource has, whatever its schema says. */
const TYPE_AND_METADATA: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/**
 * Defaults of a resource's own fields are forbidden elsewhere; below `additionalProperties` none are looked at.
 * `inMeta`: of the type or the metadata of an embedded resource, where fields that the schema does not name are cut off
 * without a word.
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

/** A value that is embedded itself is found as a field of something. */
function rootOf(schema: Schema): Schema {
  return { ...schema, properties: new Map([['value', schema]]), additional: undefined, items: undefined };
}

/** Fields that a default leaves out are filled in like any others. */
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
