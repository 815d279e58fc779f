/**
 * Rules that several kinds of dynamic resource allocation share. Source:
 * k8s.io/kubernetes/pkg/apis/resource/validation.
 */
import { dns1123LabelErrors, dns1123SubdomainErrors, labelValueErrors, qualifiedNameErrors } from '../../base/names.ts';
import { type FieldError, fieldError, NULL } from '../meta/field-error.ts';
import { isSet, utf8Length } from '../meta/validation.ts';
import { validateDriverName } from '../validation/csi.ts';
import { validateNameRule, validateOneOf } from '../validation/scalars.ts';
import type { DeviceConfiguration, DeviceSelector, DeviceTaint, DeviceToleration } from './types.ts';

export const MAX_LIST = 32;
export const MAX_EXPRESSION = 10 * 1024;
const MAX_RAW = 10 * 1024;
const MAX_ID = 32;
const MAX_POOL = 253;
const MAX_TAINTS = 16;
const MAX_BINDING = 4;
const OPERATORS = ['Equal', 'Exists'];
const EFFECTS = ['NoExecute', 'NoSchedule', 'None'];
const HYPHENATED = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const NORMAL_UUID =
  'uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters';
const C_IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
const C_RULE =
  "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";

/**
 * Validates the number of items, each item with `rule`, and the uniqueness of their keys. Errors about duplicates come
 * after the errors of the items.
 */
export function validateItems<T>(
  items: readonly T[] | undefined,
  max: number,
  at: string,
  rule: (item: T, at: string) => FieldError[],
  key?: (item: T) => string,
): FieldError[] {
  const given = items ?? [];
  if (given.length > max) return [fieldError.tooMany(at, given.length, max)];
  const errors = given.flatMap((item, index) => rule(item, `${at}[${index}]`));
  if (key === undefined) return errors;
  const seen = new Set<string>();
  for (const [index, item] of given.entries()) {
    const identity = key(item);
    if (seen.has(identity)) errors.push(fieldError.duplicate(`${at}[${index}]`, identity));
    seen.add(identity);
  }
  return errors;
}

export const validateLabelName = (name: string | undefined, at: string): FieldError[] =>
  validateNameRule(name ?? '', dns1123LabelErrors, at);

export const validateSubdomain = (name: string | undefined, at: string): FieldError[] =>
  isSet(name) ? validateNameRule(name, dns1123SubdomainErrors, at) : [fieldError.required(at)];

export const validateDriver = (driver: string | undefined, at: string): FieldError[] =>
  validateDriverName(driver ?? '', at);

export function validatePoolName(pool: string | undefined, at: string): FieldError[] {
  if (!isSet(pool)) return [fieldError.required(at)];
  const errors = utf8Length(pool) > MAX_POOL ? [fieldError.tooLong(at, MAX_POOL)] : [];
  for (const part of pool.split('/')) {
    for (const message of dns1123SubdomainErrors(part)) errors.push(fieldError.invalid(at, part, message));
  }
  return errors;
}

function validateIdentifier(id: string, at: string): FieldError[] {
  const errors = utf8Length(id) > MAX_ID ? [fieldError.tooLong(at, MAX_ID)] : [];
  if (!C_IDENTIFIER.test(id)) errors.push(fieldError.invalid(at, id, C_RULE));
  return errors;
}

/** Validates the name of an attribute or capacity. `full`: the domain is required. */
export function validateQualifiedName(name: string, at: string, full = false): FieldError[] {
  const [first = '', id, ...more] = name.split('/');
  if (id === undefined) {
    const errors = validateIdentifier(first, at);
    const rule = 'a fully qualified name must be a domain and a name separated by a slash';
    return full ? [...errors, fieldError.invalid(at, name, rule)] : errors;
  }
  if (more.length > 0) return [fieldError.invalid(at, name, 'must not contain more than one slash')];
  return [
    ...(first === '' ? [fieldError.invalid(at, '', 'the domain must not be empty')] : validateDriver(first, at)),
    ...(id === '' ? [fieldError.invalid(at, '', 'the name must not be empty')] : validateIdentifier(id, at)),
  ];
}

/** Requires a lower-case UUID with hyphens. */
export function validateUuid(uid: string, at: string): FieldError[] {
  if (UUID.test(uid)) return [];
  const why = uuidError(uid) ?? NORMAL_UUID;
  return [fieldError.invalid(at, uid, why)];
}

/**
 * Error text unless the text is a UUID in any form: plain, without hyphens, in braces, or with the prefix `urn:uuid:`.
 */
function uuidError(text: string): string | undefined {
  const invalid = (why: string): string => `error validating uid: ${why}`;
  const length = utf8Length(text);
  if (![32, 36, 38, 45].includes(length)) return invalid(`invalid UUID length: ${length}`);
  if (length === 45 && text.slice(0, 9).toLowerCase() !== 'urn:uuid:') {
    return invalid(`invalid urn prefix: ${JSON.stringify(text.slice(0, 9))}`);
  }
  if (length === 38 && !(text.startsWith('{') && text.endsWith('}'))) return invalid('invalid bracketed UUID format');
  const plain = length === 45 ? text.slice(9) : length === 38 ? text.slice(1, -1) : text;
  return (length === 32 ? /^[0-9a-f]{32}$/i : HYPHENATED).test(plain) ? undefined : invalid('invalid UUID format');
}

/** Validates the form of selectors. The API server, which has the CEL compiler, validates the expressions. */
export const validateSelectors = (selectors: readonly DeviceSelector[] | undefined, at: string): FieldError[] =>
  validateItems(selectors, MAX_LIST, at, ({ cel }, where) => {
    if (cel === undefined) return [fieldError.required(`${where}.cel`)];
    const length = utf8Length(cel.expression ?? '');
    return length > MAX_EXPRESSION ? [fieldError.tooLong(`${where}.cel.expression`, MAX_EXPRESSION)] : [];
  });

export function validateRaw(raw: unknown, at: string): FieldError[] {
  if (raw === undefined || raw === null) return [fieldError.required(at)];
  if (typeof raw !== 'object' || Array.isArray(raw)) {
    return [fieldError.invalid(at, '<value omitted>', 'must be a valid JSON object')];
  }
  return utf8Length(JSON.stringify(raw)) > MAX_RAW ? [fieldError.tooLong(at, MAX_RAW)] : [];
}

export function validateConfiguration({ opaque }: DeviceConfiguration, at: string): FieldError[] {
  if (opaque === undefined) return [fieldError.required(`${at}.opaque`)];
  return [
    ...validateDriver(opaque.driver, `${at}.opaque.driver`),
    ...validateRaw(opaque.parameters, `${at}.opaque.parameters`),
  ];
}

const validateValue = (value: string | undefined, at: string): FieldError[] =>
  validateNameRule(value ?? '', labelValueErrors, at);

const validateKey = (key: string, at: string): FieldError[] => validateNameRule(key, qualifiedNameErrors, at);

interface Binding {
  readonly bindingConditions?: readonly string[];
  readonly bindingFailureConditions?: readonly string[];
}

/** Validates binding conditions: success and failure conditions must be set together. */
export function validateBinding({ bindingConditions, bindingFailureConditions }: Binding, at: string): FieldError[] {
  const [good, bad] = [bindingConditions ?? [], bindingFailureConditions ?? []];
  const [goodAt, badAt] = [`${at}.bindingConditions`, `${at}.bindingFailureConditions`];
  const errors = [
    ...validateItems(good, MAX_BINDING, goodAt, validateKey),
    ...validateItems(bad, MAX_BINDING, badAt, validateKey),
  ];
  const [goods, bads] = [new Set<string>(), new Set<string>()];
  for (const [index, each] of good.entries()) {
    if (goods.has(each)) errors.push(fieldError.duplicate(`${goodAt}[${index}]`, each));
    goods.add(each);
  }
  for (const [index, each] of bad.entries()) {
    const where = `${badAt}[${index}]`;
    if (bads.has(each)) errors.push(fieldError.duplicate(where, each));
    bads.add(each);
    if (goods.has(each)) {
      errors.push(fieldError.invalid(where, each, 'bindingFailureConditions must not overlap with bindingConditions'));
    }
  }
  const needed = (field: string, what: string, of: readonly string[] | undefined): FieldError =>
    fieldError.invalid(`${at}.${field}`, of ?? NULL, `${field} are required to use ${what}`);
  if (good.length === 0 && bad.length > 0) {
    errors.push(needed('bindingConditions', 'bindingFailureConditions', bindingConditions));
  }
  if (bad.length === 0 && good.length > 0) {
    errors.push(needed('bindingFailureConditions', 'bindingConditions', bindingFailureConditions));
  }
  return errors;
}

export const validateDeviceTaints = (taints: readonly DeviceTaint[] | undefined, at: string): FieldError[] =>
  validateItems(taints, MAX_TAINTS, at, (taint, where) => [
    ...validateKey(taint.key ?? '', `${where}.key`),
    ...validateValue(taint.value, `${where}.value`),
    ...validateOneOf(taint.effect, EFFECTS, `${where}.effect`),
  ]);

/** Validates device tolerations. Their number is not limited. */
export const validateDeviceTolerations = (given: readonly DeviceToleration[] | undefined, at: string): FieldError[] =>
  (given ?? []).flatMap(({ key, operator, value, effect }, index) => {
    const where = `${at}[${index}]`;
    const errors = isSet(key) ? validateKey(key, `${where}.key`) : [];
    if (operator === 'Equal') errors.push(...validateValue(value, `${where}.value`));
    else if (operator !== 'Exists') errors.push(...validateOneOf(operator, OPERATORS, `${where}.operator`));
    else if (isSet(value)) {
      errors.push(fieldError.invalid(`${where}.value`, value, 'must be empty for operator `Exists`'));
    }
    return isSet(effect) ? [...errors, ...validateOneOf(effect, EFFECTS, `${where}.effect`)] : errors;
  });
