/** Rules that several kinds of dynamic resource allocation share. Source: k8s.io/kubernetes/pkg/apis/resource/validation. */
import { dns1123LabelErrors, dns1123SubdomainErrors, labelValueErrors, qualifiedNameErrors } from '../../base/names.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
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
const EFFECTS = ['NoExecute', 'NoSchedule', 'None'];
const C_IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
const C_RULE =
  "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";

/** Each item by `rule`, no more than `max`, and none twice where `key` tells them apart. */
export function validateItems<T>(
  items: readonly T[] | undefined,
  max: number,
  at: string,
  rule: (item: T, at: string) => FieldError[],
  key?: (item: T) => { readonly value: string | undefined; readonly field?: string },
): FieldError[] {
  const given = items ?? [];
  if (given.length > max) return [fieldError.tooMany(at, given.length, max)];
  const seen = new Set<string>();
  return given.flatMap((item, index) => {
    const errors = rule(item, `${at}[${index}]`);
    const identity = key?.(item);
    if (identity?.value === undefined) return errors;
    const where = `${at}[${index}]${identity.field === undefined ? '' : `.${identity.field}`}`;
    if (seen.has(identity.value)) errors.push(fieldError.duplicate(where, identity.value));
    seen.add(identity.value);
    return errors;
  });
}

export const validateLabelName = (name: string | undefined, at: string): FieldError[] =>
  isSet(name) ? validateNameRule(name, dns1123LabelErrors, at) : [fieldError.required(at)];

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

/** Of an attribute or a capacity; `full`: with the domain that may be left out in devices. */
export function validateQualifiedName(name: string, at: string, full = false): FieldError[] {
  if (name === '') return [fieldError.required(at, 'name required')];
  const slash = name.indexOf('/');
  if (slash < 0) {
    const errors = validateIdentifier(name, at);
    return full ? [...errors, fieldError.invalid(at, name, 'must include a domain')] : errors;
  }
  const [domain, id] = [name.slice(0, slash), name.slice(slash + 1)];
  return [
    ...(domain === '' ? [fieldError.required(at, 'the domain must not be empty')] : validateDriver(domain, at)),
    ...(id === '' ? [fieldError.required(at, 'the name must not be empty')] : validateIdentifier(id, at)),
  ];
}

/** That expressions can be compiled is for who has a compiler. */
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

export const validateDeviceTaints = (taints: readonly DeviceTaint[] | undefined, at: string): FieldError[] =>
  validateItems(taints, MAX_TAINTS, at, (taint, where) => [
    ...(isSet(taint.key)
      ? validateNameRule(taint.key, qualifiedNameErrors, `${where}.key`)
      : [fieldError.required(`${where}.key`)]),
    ...validateValue(taint.value, `${where}.value`),
    ...(isSet(taint.effect)
      ? validateOneOf(taint.effect, EFFECTS, `${where}.effect`)
      : [fieldError.required(`${where}.effect`)]),
  ]);

export const validateDeviceTolerations = (given: readonly DeviceToleration[] | undefined, at: string): FieldError[] =>
  validateItems(given, MAX_TAINTS, at, ({ key, operator, value, effect }, where) => {
    const errors = isSet(key) ? validateNameRule(key, qualifiedNameErrors, `${where}.key`) : [];
    if (!isSet(key) && operator !== 'Exists') {
      errors.push(
        fieldError.invalid(
          `${where}.operator`,
          operator,
          'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        ),
      );
    }
    if (operator === 'Exists') {
      if (isSet(value)) {
        errors.push(fieldError.invalid(`${where}.value`, value, 'must be empty when `operator` is `Exists`'));
      }
    } else if (operator === 'Equal') errors.push(...validateValue(value, `${where}.value`));
    else errors.push(fieldError.notSupported(`${where}.operator`, operator ?? '', ['Equal', 'Exists']));
    return isSet(effect) ? [...errors, ...validateOneOf(effect, EFFECTS, `${where}.effect`)] : errors;
  });
