/** Defaults must be what the schema itself would let through. Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go. */
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { validateEmbedded } from './embedded.ts';
import { pruneValue } from './prune.ts';
import { fieldOf, isObject, type Schema, setFieldOf } from './schema.ts';
import { validateValue } from './validate.ts';

/** Defaults of a resource's own fields are forbidden elsewhere; below `additionalProperties` none are looked at. */
export function defaultErrors(schema: Schema, path: string): FieldError[] {
  const found: FieldError[] = [];
  if (schema.default !== undefined) found.push(...errorsOf(schema, schema.default, `${path}.default`));
  if (schema.items !== undefined) found.push(...defaultErrors(schema.items, `${path}.items`));
  for (const [name, property] of schema.properties)
    found.push(...defaultErrors(property, `${path}.properties[${name}]`));
  return found;
}

function errorsOf(schema: Schema, given: JsonValue, at: string): FieldError[] {
  const value: JsonValue = structuredClone(given);
  const found: FieldError[] = [];
  if (pruneValue(schema, value).length > 0) found.push(fieldError.invalid(at, given, 'must not have unknown fields'));
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
