/**
 * Checks a value against a schema, in upstream's words. On updates, what has not changed is not held against the writer (KEP-4008,
 * ratcheting). Sources: k8s.io/kube-openapi/pkg/validation/validate, k8s.io/apiextensions-apiserver/pkg/apiserver/validation.
 */
import { messageOf } from '../../base/errors.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { matchesFormat } from './formats.ts';
import { fieldOf, isObject, jsonEqual, type Schema } from './schema.ts';

/** More findings than these help nobody. */
const MAX_FINDINGS = 64;
/** Of a long enumeration, so many values are named. */
const MAX_NAMED = 128;
/** Alternatives of alternatives multiply: beyond so many steps a value is refused rather than judged. */
const MAX_STEPS = 2_000_000;

/** Checks a whole value; `old` is what it was before an update. */
export function validateValue(schema: Schema, value: JsonValue, old?: JsonValue): FieldError[] {
  const walk = new Walk();
  walk.check(schema, value, '', old);
  return walk.found;
}

/** Whether a value passes; for alternatives. */
class Walk {
  readonly found: FieldError[] = [];
  #steps = 0;

  /** `old`: the same place before the update; undefined when there is none or it cannot be told. */
  check(schema: Schema, value: JsonValue, path: string, old?: JsonValue): void {
    if (old !== undefined && jsonEqual(value, old)) return;
    this.#steps += 1;
    if (this.#steps > MAX_STEPS) {
      if (this.#steps === MAX_STEPS + 1)
        this.#add(fieldError.invalid(path, '', 'the schema has too many alternatives to be checked'));
      return;
    }
    if (value === null) {
      if (!schema.nullable && (schema.type !== '' || schema.intOrString)) this.#wrongType(schema, value, path);
      else if (schema.enum !== undefined && !schema.nullable) this.#enum(schema, value, path);
      return;
    }
    if (!this.#type(schema, value, path)) return;
    if (schema.enum !== undefined) this.#enum(schema, value, path);
    if (typeof value === 'string') this.#string(schema, value, path);
    else if (typeof value === 'number') this.#number(schema, value, path);
    else if (Array.isArray(value)) this.#array(schema, value, path, old);
    else if (isObject(value)) this.#object(schema, value, path, old);
    this.#alternatives(schema, value, path);
  }

  #add(error: FieldError): void {
    if (this.found.length < MAX_FINDINGS) this.found.push(error);
  }

  #invalid(path: string, value: JsonValue, what: string): void {
    this.#add(fieldError.invalid(path, shown(value), `${path} in body ${what}`));
  }

  #type(schema: Schema, value: JsonValue, path: string): boolean {
    const actual = typeOf(value);
    if (schema.intOrString) {
      if (actual === 'string' || actual === 'integer') return true;
    } else if (schema.type === '' || schema.type === actual || (schema.type === 'number' && actual === 'integer')) {
      return true;
    }
    this.#wrongType(schema, value, path);
    return false;
  }

  #wrongType(schema: Schema, value: JsonValue, path: string): void {
    const actual = typeOf(value);
    const expected = schema.intOrString ? 'integer,string' : schema.type;
    this.#add({
      type: 'FieldValueTypeInvalid',
      field: path === '' ? '<nil>' : path,
      message: `Invalid value: ${JSON.stringify(actual)}: ${path} in body must be of type ${expected}: ${JSON.stringify(actual)}`,
    });
  }

  #enum(schema: Schema, value: JsonValue, path: string): void {
    const values = schema.enum ?? [];
    if (inEnum(schema, value)) return;
    this.#add(
      fieldError.notSupported(
        path,
        value,
        values.slice(0, MAX_NAMED).map((each) => (typeof each === 'string' ? each : JSON.stringify(each))),
      ),
    );
  }

  #string(schema: Schema, value: string, path: string): void {
    const { maxLength, minLength, pattern, format } = schema;
    if (maxLength !== undefined || minLength !== undefined) {
      const length = lengthOf(value);
      if (maxLength !== undefined && length > maxLength) this.#add(fieldError.tooLong(path, maxLength));
      if (minLength !== undefined && length < minLength) {
        this.#invalid(path, value, `should be at least ${minLength} chars long`);
      }
    }
    if (pattern !== undefined) {
      try {
        if (!pattern.regexp.test(value)) this.#invalid(path, value, `should match '${pattern.text}'`);
      } catch (error) {
        this.#invalid(path, value, `should match '${pattern.text}': ${messageOf(error)}`);
      }
    }
    if (format !== '' && !matchesFormat(format, value)) {
      this.#invalid(path, value, `must be of type ${format}: ${JSON.stringify(value.slice(0, 256))}`);
    }
  }

  #number(schema: Schema, value: number, path: string): void {
    const { maximum, minimum, multipleOf, format } = schema;
    if (maximum !== undefined && (schema.exclusiveMaximum ? value >= maximum : value > maximum)) {
      this.#invalid(path, value, `should be less than ${schema.exclusiveMaximum ? '' : 'or equal to '}${maximum}`);
    }
    if (minimum !== undefined && (schema.exclusiveMinimum ? value <= minimum : value < minimum)) {
      this.#invalid(path, value, `should be greater than ${schema.exclusiveMinimum ? '' : 'or equal to '}${minimum}`);
    }
    if (multipleOf !== undefined && multipleOf > 0 && !isMultiple(value, multipleOf)) {
      this.#invalid(path, value, `should be a multiple of ${multipleOf}`);
    }
    if (format === 'int32' && (value > 2147483647 || value < -2147483648)) {
      this.#invalid(path, value, 'must be of type int32');
    }
  }

  #array(schema: Schema, value: JsonValue[], path: string, old: JsonValue | undefined): void {
    const { maxItems, minItems, items } = schema;
    if (maxItems !== undefined && value.length > maxItems) this.#add(tooMany(path, value.length, maxItems));
    if (minItems !== undefined && value.length < minItems) {
      this.#invalid(path, value.length, `should have at least ${minItems} items`);
    }
    if (schema.uniqueItems && hasDuplicates(value)) this.#invalid(path, value, "shouldn't contain duplicates");
    if (items === undefined) return;
    const before = correlated(schema, old);
    for (const [index, item] of value.entries()) this.check(items, item, `${path}[${index}]`, before(item));
  }

  #object(schema: Schema, value: JsonObject, path: string, old: JsonValue | undefined): void {
    const { maxProperties, minProperties, required, properties, additional } = schema;
    const names = Object.keys(value);
    if (maxProperties !== undefined && names.length > maxProperties)
      this.#add(tooMany(path, names.length, maxProperties));
    if (minProperties !== undefined && names.length < minProperties) {
      this.#invalid(path, names.length, `should have at least ${minProperties} properties`);
    }
    const at = (name: string): string => (path === '' ? name : `${path}.${name}`);
    this.#steps += required.length;
    for (const name of required) if (!Object.hasOwn(value, name)) this.#add(fieldError.required(at(name)));
    const before = isObject(old) ? old : undefined;
    for (const name of names) {
      const below = properties.get(name) ?? (typeof additional === 'object' ? additional : undefined);
      if (below === undefined) continue;
      this.check(below, value[name] ?? null, at(name), before === undefined ? undefined : fieldOf(before, name));
    }
  }

  /** Alternatives see the value as it is: what has not changed is no excuse there. */
  #alternatives(schema: Schema, value: JsonValue, path: string): void {
    for (const each of schema.allOf) this.check(each, value, path);
    const message = (what: string, rest = ''): void =>
      this.#add({
        type: 'FieldValueInvalid',
        field: path === '' ? '<nil>' : path,
        message: `Invalid value: "": ${JSON.stringify(path)} ${what}${rest}`,
      });
    if (schema.anyOf.length > 0 && !schema.anyOf.some((each) => this.#passes(each, value))) {
      message('must validate at least one schema (anyOf)');
    }
    if (schema.oneOf.length > 0) {
      const valid = schema.oneOf.filter((each) => this.#passes(each, value)).length;
      if (valid !== 1) {
        message(
          'must validate one and only one schema (oneOf).',
          valid === 0 ? ' Found none valid' : ` Found ${valid} valid alternatives`,
        );
      }
    }
    if (schema.not !== undefined && this.#passes(schema.not, value)) message('must not validate the schema (not)');
  }

  #passes(schema: Schema, value: JsonValue): boolean {
    const walk = new Walk();
    walk.#steps = this.#steps;
    walk.check(schema, value, '');
    this.#steps = walk.#steps;
    return walk.found.length === 0;
  }
}

/** Values of enumerations are looked up, however many there are. */
const enumerations = new WeakMap<Schema, ReadonlySet<string>>();

function inEnum(schema: Schema, value: JsonValue): boolean {
  let known = enumerations.get(schema);
  if (known === undefined) {
    known = new Set((schema.enum ?? []).map(canonical));
    enumerations.set(schema, known);
  }
  return known.has(canonical(value));
}

/** Finds the item that an item of a list was before: by key in maps; not at all in other lists. */
export function correlated(schema: Schema, old: JsonValue | undefined): (item: JsonValue) => JsonValue | undefined {
  if (schema.listType !== 'map' || !Array.isArray(old)) return () => undefined;
  const byKey = new Map<string, JsonValue>();
  for (const item of old) byKey.set(listKey(schema, item), item);
  return (item) => byKey.get(listKey(schema, item));
}

function listKey(schema: Schema, item: JsonValue): string {
  return JSON.stringify(schema.listMapKeys.map((name) => (isObject(item) ? (fieldOf(item, name) ?? null) : null)));
}

/** Sets without repetitions, maps without two items of one key. */
export function validateLists(schema: Schema, value: JsonValue, path = ''): FieldError[] {
  const found: FieldError[] = [];
  checkLists(schema, value, path, found);
  return found;
}

function checkLists(schema: Schema, value: JsonValue, path: string, found: FieldError[]): void {
  if (found.length >= MAX_FINDINGS) return;
  if (Array.isArray(value)) {
    if (schema.listType === 'set' || schema.listType === 'map') duplicateItems(schema, value, path, found);
    if (schema.items !== undefined) {
      for (const [index, item] of value.entries()) checkLists(schema.items, item, `${path}[${index}]`, found);
    }
  } else if (isObject(value)) {
    for (const name of Object.keys(value)) {
      const below =
        schema.properties.get(name) ?? (typeof schema.additional === 'object' ? schema.additional : undefined);
      if (below !== undefined) checkLists(below, value[name] ?? null, path === '' ? name : `${path}.${name}`, found);
    }
  }
}

function duplicateItems(schema: Schema, value: readonly JsonValue[], path: string, found: FieldError[]): void {
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    const key = schema.listType === 'map' ? listKey(schema, item) : canonical(item);
    if (seen.has(key)) {
      const named =
        schema.listType === 'map' && isObject(item)
          ? Object.fromEntries(schema.listMapKeys.map((name) => [name, fieldOf(item, name) ?? null]))
          : item;
      found.push(fieldError.duplicate(`${path}[${index}]`, named));
    }
    seen.add(key);
  }
}

function canonical(value: JsonValue): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key] ?? null)}`)
    .join(',')}}`;
}

function hasDuplicates(value: readonly JsonValue[]): boolean {
  const seen = new Set<string>();
  for (const item of value) {
    const key = canonical(item);
    if (seen.has(key)) return true;
    seen.add(key);
  }
  return false;
}

function typeOf(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

/** Large values are not repeated whole. */
function shown(value: JsonValue): JsonValue {
  return typeof value === 'string' && value.length > 1024 ? value.slice(0, 1024) : value;
}

function lengthOf(text: string): number {
  let length = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < 0xdc00 || code > 0xdfff) length += 1;
  }
  return length;
}

function isMultiple(value: number, of: number): boolean {
  const times = value / of;
  return Math.abs(times - Math.round(times)) < 1e-9 * Math.max(1, Math.abs(times));
}

function tooMany(field: string, actual: number, max: number): FieldError {
  return { type: 'FieldValueTooMany', field, message: `Too many: ${actual}: must have at most ${max} items` };
}
