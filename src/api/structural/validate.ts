/**
 * Validation of values against a schema, with upstream's errors. On updates, unchanged invalid values are accepted
 * (KEP-4008, ratcheting). Sources: k8s.io/kube-openapi/pkg/validation/validate,
 * k8s.io/apiextensions-apiserver/pkg/apiserver/validation.
 */

import { messageOf } from '../../base/errors.ts';
import { jsonEqual } from '../meta/equality.ts';
import { type FieldError, fieldError, NULL } from '../meta/field-error.ts';
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { isFormat, matchesFormat } from './formats.ts';
import { fieldOf, isObject, type Schema } from './schema.ts';
import { featuresOf } from './schema-features.ts';

/** Maximum number of errors in one response. */
const MAX_FINDINGS = 64;
/** Maximum number of enumeration values that an error lists. */
const MAX_NAMED = 128;
/**
 * Maximum number of checks of one value, because nested alternatives multiply the checks. Above it the value is
 * rejected.
 */
const MAX_STEPS = 2_000_000;

/** Validates a whole value. `old` is its value before an update. */
export function validateValue(schema: Schema, value: JsonValue, old?: JsonValue): FieldError[] {
  const walk = new Walk();
  walk.check(schema, value, '', old);
  return walk.found;
}

/**
 * One validation pass over a value. Every applicable check runs, even after errors. `matches` counts passed checks; as
 * upstream, this number selects the best of several alternatives.
 */
class Walk {
  found: FieldError[] = [];
  matches = 0;
  #steps: { count: number };

  constructor(steps: { count: number } = { count: 0 }) {
    this.#steps = steps;
  }

  /** Checks a value. `old`: the same value before the update; undefined if there is none or it cannot be found. */
  check(schema: Schema, value: JsonValue, path: string, old?: JsonValue): void {
    if (old !== undefined && isUnchanged(schema, value, old)) return;
    this.#steps.count += 1;
    if (this.#steps.count > MAX_STEPS) {
      if (this.#steps.count === MAX_STEPS + 1)
        this.#add(fieldError.invalid(path, '', 'the schema has too many alternatives to be checked'));
      return;
    }
    this.#type(schema, value, path);
    if (value !== null) {
      this.#alternatives(schema, value, path);
      if (typeof value === 'string') this.#string(schema, value, path);
      else if (typeof value === 'number' || typeof value === 'bigint') this.#number(schema, value, path);
      else if (Array.isArray(value)) this.#array(schema, value, path, old);
    }
    if (schema.enum !== undefined && schema.enum.length > 0) this.#enum(schema, schema.enum, value, path);
    if (value === null) return;
    if (isObject(value)) this.#object(schema, value, path, old);
    this.matches += 3;
  }

  /** Shortcut for schemas that only restrict the type. Counts the same matches as `check`. */
  #fits({ type }: Schema, value: JsonValue): boolean {
    const isNumber =
      typeof value === 'number' && (type === 'integer' ? Number.isSafeInteger(value) : type === 'number');
    if (!isNumber && typeof value !== type) return false;
    this.#steps.count += 1;
    if (this.#steps.count > MAX_STEPS) return false;
    this.matches += isNumber ? 7 : 5;
    return true;
  }

  #add(error: FieldError): void {
    if (this.found.length < MAX_FINDINGS) this.found.push(error);
  }

  #invalid(path: string, value: JsonValue, what: string): void {
    this.#add(fieldError.invalid(pathOf(path), shown(value), `${path} in body ${what}`));
  }

  /** Adds an error about the whole resource. */
  #plain(message: string): void {
    this.#add({ type: 'FieldValueInvalid', field: '<nil>', message: `Invalid value: "": ${message}` });
  }

  #type(schema: Schema, value: JsonValue, path: string): void {
    const types = schema.intOrString ? ['integer', 'string'] : schema.type === '' ? [] : [schema.type];
    const format = formatOf(schema);
    if (types.length === 0) return;
    const actual = typeOf(value);
    if (value === null) {
      if (!schema.nullable) this.#wrongType(path, types.join(','), actual);
      return;
    }
    const fits = types.includes(actual as (typeof types)[number]) || (actual === 'integer' && types.includes('number'));
    if (fits) this.matches += 1;
    else if (format !== '' && typeof value !== 'string' && !Array.isArray(value))
      this.#wrongType(path, format, actual === 'integer' ? 'int64' : actual === 'number' ? 'float64' : '');
    else this.#wrongType(path, types.join(','), actual);
  }

  #wrongType(path: string, expected: string, actual: string): void {
    const quoted = JSON.stringify(actual);
    this.#add({
      type: 'FieldValueTypeInvalid',
      field: pathOf(path),
      message: `Invalid value: ${quoted}: ${path} in body must be of type ${expected}: ${quoted}`,
    });
  }

  #enum(schema: Schema, values: readonly JsonValue[], value: JsonValue, path: string): void {
    if (value !== null && inEnum(schema, value)) return;
    this.#add(
      fieldError.notSupported(
        pathOf(path),
        value ?? NULL,
        values.slice(0, MAX_NAMED).map((each) => (typeof each === 'string' ? each : JSON.stringify(each))),
      ),
    );
  }

  /** Reports the first error of length and pattern, and in addition an error of the format. */
  #string(schema: Schema, value: string, path: string): void {
    const { maxLength, minLength, pattern, format } = schema;
    const length = maxLength === undefined && minLength === undefined ? 0 : lengthOf(value);
    if (maxLength !== undefined && length > maxLength) this.#add(fieldError.tooLong(pathOf(path), maxLength));
    else if (minLength !== undefined && length < minLength)
      this.#invalid(path, value, `should be at least ${minLength} chars long`);
    else if (pattern !== undefined && 'problem' in pattern)
      this.#invalid(path, value, `should match '${pattern.text}, but pattern is invalid: ${pattern.problem}'`);
    else if (pattern !== undefined) {
      try {
        if (!pattern.regexp.test(value)) this.#invalid(path, value, `should match '${pattern.text}'`);
      } catch (error) {
        this.#invalid(path, value, `should match '${pattern.text}': ${messageOf(error)}`);
      }
    }
    if (format === '' || (schema.type !== 'string' && schema.type !== '') || schema.intOrString) return;
    if (matchesFormat(format, value)) return;
    const quoted = JSON.stringify(value.slice(0, 256));
    this.#add({
      type: 'FieldValueTypeInvalid',
      field: pathOf(path),
      message: `Invalid value: ${quoted}: ${path} in body must be of type ${format}: ${quoted}`,
    });
  }

  #number(schema: Schema, value: number | bigint, path: string): void {
    const { maximum, minimum, multipleOf } = schema;
    const outside = rangeOf(schema, value);
    if (outside !== undefined) this.#plain(`Checked value must be of type ${outside} in ${path}`);
    if (multipleOf !== undefined && multipleOf > 0) this.#multiple(value, multipleOf, path);
    if (minimum !== undefined && (schema.exclusiveMinimum ? value <= minimum : value < minimum)) {
      this.#invalid(path, value, `should be greater than ${schema.exclusiveMinimum ? '' : 'or equal to '}${minimum}`);
    }
    if (maximum !== undefined && (schema.exclusiveMaximum ? value >= maximum : value > maximum)) {
      this.#invalid(path, value, `should be less than ${schema.exclusiveMaximum ? '' : 'or equal to '}${maximum}`);
    }
    this.matches += 2;
  }

  /** Integers are divided as integers, even if the factor is a double. */
  #multiple(value: number | bigint, multipleOf: number, path: string): void {
    const whole = typeof value === 'bigint' || Number.isSafeInteger(value);
    const factor = whole ? Math.trunc(multipleOf) : multipleOf;
    if (factor < 1 && whole)
      this.#add(fieldError.invalid(pathOf(path), 0, `factor MultipleOf declared for ${path} must be positive: 0`));
    else if (!isMultiple(value, factor)) this.#invalid(path, value, `should be a multiple of ${factor}`);
  }

  #array(schema: Schema, value: JsonValue[], path: string, old: JsonValue | undefined): void {
    const { maxItems, minItems, items } = schema;
    if (items !== undefined) {
      const before = correlated(schema, old);
      const plain = isPlain(items);
      for (const [index, item] of value.entries())
        if (!plain || !this.#fits(items, item)) this.check(items, item, `${path}[${index}]`, before(item));
    }
    if (minItems !== undefined && value.length < minItems)
      this.#invalid(path, value.length, `should have at least ${minItems} items`);
    if (maxItems !== undefined && value.length > maxItems) this.#add(tooMany(pathOf(path), value.length, maxItems));
    if (schema.uniqueItems && hasDuplicates(value)) this.#invalid(path, value, "shouldn't contain duplicates");
    this.matches += 2;
  }

  #object(schema: Schema, value: JsonObject, path: string, old: JsonValue | undefined): void {
    const { maxProperties, minProperties, required, properties, additional } = schema;
    const names = Object.keys(value);
    if (minProperties !== undefined && names.length < minProperties)
      this.#invalid(path, names.length, `should have at least ${minProperties} properties`);
    if (maxProperties !== undefined && names.length > maxProperties)
      this.#add(tooMany(pathOf(path), names.length, maxProperties));
    const at = (name: string): string => (path === '' ? name : `${path}.${name}`);
    const before = isObject(old) ? old : undefined;
    const plain = typeof additional === 'object' && isPlain(additional) ? additional : undefined;
    for (const name of names) {
      const below = properties.get(name) ?? (typeof additional === 'object' ? additional : undefined);
      if (below === undefined && additional === false)
        this.#add(fieldError.invalid(pathOf(path), name, `${at(name)} in body is a forbidden property`));
      if (below === undefined || (below === plain && this.#fits(below, value[name] ?? null))) continue;
      this.check(below, value[name] ?? null, at(name), before === undefined ? undefined : fieldOf(before, name));
    }
    this.#steps.count += required.length;
    for (const name of required) if (!Object.hasOwn(value, name)) this.#add(fieldError.required(at(name)));
    this.matches += 1;
  }

  /** Checks anyOf, oneOf, allOf and not. Within these schemas, an unchanged invalid value is an error. */
  #alternatives(schema: Schema, value: JsonValue, path: string): void {
    const quoted = JSON.stringify(path);
    const { anyOf, oneOf, allOf, not } = schema;
    this.matches += 1;
    if (anyOf.length > 0) {
      const tried = this.#try(anyOf, value, path, { oneSuffices: true });
      if (tried.passed === 0) this.#plain(`${quoted} must validate at least one schema (anyOf)`);
      this.#merge(tried.best);
    }
    if (oneOf.length > 0) {
      const { passed, best } = this.#try(oneOf, value, path, { oneSuffices: false });
      if (passed !== 1) {
        const count = passed === 0 ? 'Found none valid' : `Found ${passed} valid alternatives`;
        this.#plain(`${quoted} must validate one and only one schema (oneOf). ${count}`);
      }
      if (passed < 2) this.#merge(best);
    }
    if (allOf.length > 0) {
      const walks = allOf.map((each) => this.#sub(each, value, path));
      for (const walk of walks) this.#merge(walk);
      const passed = walks.filter((walk) => walk.found.length === 0).length;
      if (passed < allOf.length)
        this.#plain(`${quoted} must validate all the schemas (allOf)${passed === 0 ? '. None validated' : ''}`);
    }
    if (not !== undefined && this.#sub(not, value, path).found.length === 0)
      this.#plain(`${quoted} must not validate the schema (not)`);
  }

  #sub(schema: Schema, value: JsonValue, path: string): Walk {
    const walk = new Walk(this.#steps);
    walk.check(schema, value, path);
    return walk;
  }

  /**
   * Checks a value against alternatives and returns the number that pass. `best` is the first passing alternative; if
   * none passes, the one with the most passed checks.
   */
  #try(
    schemas: readonly Schema[],
    value: JsonValue,
    path: string,
    { oneSuffices }: { readonly oneSuffices: boolean },
  ): { readonly passed: number; readonly best: Walk | undefined } {
    let passed = 0;
    let success: Walk | undefined;
    let failure: Walk | undefined;
    for (const schema of schemas) {
      const walk = this.#sub(schema, value, path);
      if (walk.found.length === 0) {
        passed += 1;
        success ??= walk;
        if (oneSuffices) break;
      } else if (failure === undefined || walk.matches > failure.matches) failure = walk;
    }
    return { passed, best: success ?? failure };
  }

  /** Adds the errors of another pass that are not reported yet. */
  #merge(walk: Walk | undefined): void {
    if (walk === undefined) return;
    this.matches += walk.matches;
    for (const error of walk.found) {
      if (!this.found.some((each) => each.field === error.field && each.message === error.message)) this.#add(error);
    }
  }
}

/** Whether the schema of a scalar only restricts the type. */
function isPlain(schema: Schema): boolean {
  if (!PLAIN_TYPES.has(schema.type) || schema.format !== '' || schema.intOrString || schema.enum !== undefined)
    return false;
  if (schema.anyOf.length + schema.oneOf.length + schema.allOf.length > 0 || schema.not !== undefined) return false;
  return LIMITS.every((limit) => schema[limit] === undefined);
}

const PLAIN_TYPES: ReadonlySet<string> = new Set(['string', 'integer', 'number', 'boolean']);
const LIMITS = ['pattern', 'maxLength', 'minLength', 'maximum', 'minimum', 'multipleOf'] as const;

const pathOf = (path: string): string => (path === '' ? '<nil>' : path);

/** Format that further limits the type, for example int32; '' for formats that do not count as types. */
function formatOf({ type, format }: Schema): string {
  if (type === 'integer') return format === 'int32' || format === 'int64' ? format : '';
  if (type === 'string') return isFormat(format) ? format : '';
  return type === 'number' && (format === 'float' || format === 'double') ? format : '';
}

/** Type and format whose range the number exceeds; undefined if it fits. */
function rangeOf(schema: Schema, value: number | bigint): string | undefined {
  const format = formatOf(schema);
  if (schema.type === 'integer') {
    const limit = format === 'int32' ? 2 ** 31 : 2 ** 63;
    if (isInt(value) && value >= -limit && value < limit) return undefined;
    return `integer ${format === '' ? '(default format)' : `with format ${format}`}`;
  }
  return format === 'float' && Math.abs(Number(value)) > MAX_FLOAT ? 'number with format float' : undefined;
}

/** Whether Go decodes the number as an integer, or as a double with an integer value. */
const isInt = (value: number | bigint): boolean => typeof value === 'bigint' || Number.isSafeInteger(value);

const MAX_FLOAT = (2 - 2 ** -23) * 2 ** 127;

/** Sets for fast lookup of enumeration values. */
const enumerations = new WeakMap<Schema, ReadonlySet<string>>();

function inEnum(schema: Schema, value: JsonValue): boolean {
  let known = enumerations.get(schema);
  if (known === undefined) {
    known = new Set((schema.enum ?? []).map(canonical));
    enumerations.set(schema, known);
  }
  return known.has(canonical(value));
}

/**
 * Whether the value is unchanged by an update. Items of lists of type map may have moved. Source:
 * k8s.io/apiserver/pkg/cel/common.
 */
export function isUnchanged(schema: Schema, value: JsonValue, old: JsonValue): boolean {
  if (jsonEqual(value, old)) return true;
  if (!featuresOf(schema).maps) return false;
  if (Array.isArray(value)) {
    const { items, listType } = schema;
    if (listType !== 'map' || items === undefined || !Array.isArray(old) || value.length !== old.length) return false;
    const before = correlated(schema, old);
    return value.every((item) => {
      const was = before(item);
      return was !== undefined && isUnchanged(items, item, was);
    });
  }
  if (!isObject(value) || !isObject(old)) return false;
  const names = Object.keys(value);
  return (
    names.length === Object.keys(old).length &&
    names.every((name) => {
      const was = fieldOf(old, name);
      const below = schemaBelow(schema, name);
      const is = value[name] ?? null;
      return was !== undefined && (below === undefined ? jsonEqual(is, was) : isUnchanged(below, is, was));
    })
  );
}

function schemaBelow({ properties, additional }: Schema, name: string): Schema | undefined {
  return properties.get(name) ?? (typeof additional === 'object' ? additional : undefined);
}

/**
 * Returns a function that finds the previous value of a list item: by key in lists of type map, never in other lists.
 */
export function correlated(schema: Schema, old: JsonValue | undefined): (item: JsonValue) => JsonValue | undefined {
  if (schema.listType !== 'map' || !Array.isArray(old)) return () => undefined;
  const byKey = new Map<string, JsonValue>();
  for (const item of old) byKey.set(listKey(schema, item), item);
  return (item) => byKey.get(listKey(schema, item));
}

function listKey(schema: Schema, item: JsonValue): string {
  return JSON.stringify(schema.listMapKeys.map((name) => (isObject(item) ? (fieldOf(item, name) ?? null) : null)));
}

/** Reports duplicate items in sets and duplicate keys in lists of type map. */
export function validateLists(schema: Schema, value: JsonValue, path = ''): FieldError[] {
  const found: FieldError[] = [];
  checkLists(schema, value, path, found);
  return found;
}

function checkLists(schema: Schema, value: JsonValue, path: string, found: FieldError[]): void {
  if (found.length >= MAX_FINDINGS || !featuresOf(schema).keyed) return;
  if (Array.isArray(value)) {
    if (schema.listType === 'set' || schema.listType === 'map') duplicateItems(schema, value, path, found);
    if (schema.items !== undefined) {
      for (const [index, item] of value.entries()) checkLists(schema.items, item, `${path}[${index}]`, found);
    }
  } else if (isObject(value)) {
    for (const name of Object.keys(value)) {
      const below = schemaBelow(schema, name);
      if (below !== undefined)
        checkLists(
          below,
          value[name] ?? null,
          below === schema.additional ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`,
          found,
        );
    }
  }
}

/** Reports each duplicate item or key once. */
function duplicateItems(schema: Schema, value: readonly JsonValue[], path: string, found: FieldError[]): void {
  const byKey = schema.listType === 'map';
  const odd = byKey ? value.findIndex((item) => item !== null && !isObject(item)) : -1;
  if (odd >= 0) {
    found.push(fieldError.invalid(`${path}[${odd}]`, value[odd], 'must be an object for an array of list-type map'));
    return;
  }
  const times = new Map<string, number>();
  for (const [index, item] of value.entries()) {
    const identity = byKey ? keyFields(schema, item) : item;
    const key = canonical(identity);
    const before = times.get(key) ?? 0;
    times.set(key, before + 1);
    if (before === 1) found.push(fieldError.duplicate(`${path}[${index}]`, identity));
  }
}

/** The key fields that are present in an item. */
function keyFields(schema: Schema, item: JsonValue): JsonObject {
  if (!isObject(item)) return {};
  const names = schema.listMapKeys.filter((name) => Object.hasOwn(item, name));
  return Object.fromEntries(names.map((name) => [name, fieldOf(item, name) ?? null]));
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
  if (typeof value === 'number' || typeof value === 'bigint') return isInt(value) ? 'integer' : 'number';
  return typeof value;
}

/** Truncates large values for errors. */
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

function isMultiple(value: number | bigint, of: number): boolean {
  if (typeof value === 'bigint') {
    if (Number.isInteger(of)) return value % BigInt(of) === 0n;
    return isMultiple(Number(value), of);
  }
  if (Number.isInteger(value) && Number.isInteger(of) && isInt(value)) return value % of === 0;
  const times = value / of;
  return (
    Math.abs(times) <= Number.MAX_SAFE_INTEGER &&
    Math.abs(times - Math.round(times)) < 1e-9 * Math.max(1, Math.abs(times))
  );
}

function tooMany(field: string, actual: number, max: number): FieldError {
  return { type: 'FieldValueTooMany', field, message: `Too many: ${actual}: must have at most ${max} items` };
}
