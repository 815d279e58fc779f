/**
 * Request policies for shared device capacities. Source: k8s.io/kubernetes/pkg/apis/resource/validation
 * validateRequestPolicy, KEP-5075.
 */
import { addQuantity, compareQuantity, formatQuantity, type Quantity, tryParseQuantity } from '../../base/quantity.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { Amount, DeviceCapacity, RequestPolicy } from './types.ts';

const MAX_VALUES = 10;
const NANO = 1_000_000_000n;
const ZERO: Quantity = { nanos: 0n, format: 'DecimalSI' };

/** Parses a quantity. Validation has rejected invalid quantities before. */
const amount = (given: Amount | undefined): Quantity | undefined =>
  given === undefined ? undefined : (tryParseQuantity(given) ?? ZERO);

/** Number of whole units, rounded up, as upstream before 1.37. */
const units = ({ nanos }: Quantity): bigint => nanos / NANO + (nanos % NANO > 0n ? 1n : 0n);

/** Validates the request policy of a capacity. `shared`: the device allows multiple allocations. */
export function validateCapacity({ value, requestPolicy }: DeviceCapacity, at: string, shared: boolean): FieldError[] {
  if (requestPolicy === undefined) return [];
  const where = `${at}.requestPolicy`;
  return shared
    ? validatePolicy(amount(value) ?? ZERO, requestPolicy, where)
    : [fieldError.forbidden(where, 'allowMultipleAllocations must be true')];
}

function validatePolicy(most: Quantity, policy: RequestPolicy, at: string): FieldError[] {
  const { validValues = [], validRange } = policy;
  if (validValues.length === 0 && validRange === undefined) return [];
  if (validValues.length > 0 && validRange !== undefined) {
    const rule = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time';
    return [fieldError.forbidden(at, rule)];
  }
  const usual = amount(policy.default);
  const field = validRange === undefined ? 'validValues' : 'validRange';
  if (usual === undefined) return [fieldError.required(`${at}.default`, `required when ${field} is defined`)];
  return validRange === undefined
    ? validateValues(usual, most, validValues, `${at}.${field}`)
    : validateRange(usual, most, validRange, `${at}.${field}`);
}

function validateValues(usual: Quantity, most: Quantity, given: readonly Amount[], at: string): FieldError[] {
  const values = given.map((each) => amount(each) ?? ZERO);
  const errors: FieldError[] = [];
  for (const [index, value] of values.entries()) {
    const before = values[index - 1];
    if (before !== undefined && compareQuantity(before, value) > 0) {
      errors.push(
        fieldError.invalid(`${at}[${index}]`, formatQuantity(value), 'values must be sorted in ascending order'),
      );
    }
  }
  if (values.length > MAX_VALUES) errors.push(fieldError.tooMany(at, values.length, MAX_VALUES));
  else errors.push(...validateOptions(values, most, at));
  // A list that is too long is not searched, so the default is reported as invalid.
  if (values.length > MAX_VALUES || !values.some((value) => compareQuantity(value, usual) === 0)) {
    const rule = 'default value is not valid according to the requestPolicy';
    errors.push(fieldError.invalid(at, formatQuantity(usual), rule));
  }
  return errors;
}

function validateOptions(values: readonly Quantity[], most: Quantity, at: string): FieldError[] {
  const errors = values.flatMap((value, index) =>
    compareQuantity(value, most) <= 0
      ? []
      : [fieldError.invalid(`${at}[${index}]`, formatQuantity(value), larger('option', most))],
  );
  const seen = new Set<bigint>();
  for (const [index, value] of values.entries()) {
    const whole = units(value);
    if (seen.has(whole)) errors.push(fieldError.duplicate(`${at}[${index}]`, `${whole}`));
    seen.add(whole);
  }
  return errors;
}

const larger = (what: string, most: Quantity): string =>
  `${what} is larger than capacity value: ${formatQuantity(most)}`;

function validateRange(
  usual: Quantity,
  most: Quantity,
  range: NonNullable<RequestPolicy['validRange']>,
  at: string,
): FieldError[] {
  const [min, max, step] = [amount(range.min), amount(range.max), amount(range.step)];
  if (min === undefined) return [fieldError.required(`${at}.min`, 'required when validRange is defined')];
  const errors: FieldError[] = [];
  const above = (a: Quantity, b: Quantity, field: string, shown: Quantity, rule: string): void => {
    if (compareQuantity(a, b) > 0) errors.push(fieldError.invalid(`${at}.${field}`, formatQuantity(shown), rule));
  };
  above(min, most, 'min', min, larger('min', most));
  above(min, usual, 'default', usual, `default is less than min: ${formatQuantity(min)}`);
  if (max !== undefined) {
    above(min, max, 'max', min, `min is larger than max: ${formatQuantity(max)}`);
    above(max, most, 'max', max, larger('max', most));
    above(usual, max, 'default', usual, `default is more than max: ${formatQuantity(max)}`);
  }
  if (step === undefined) return errors;
  if (step.nanos <= 0n) {
    return [...errors, fieldError.invalid(`${at}.step`, formatQuantity(step), 'must be greater than zero')];
  }
  const next = addQuantity(min, step);
  above(next, most, 'step', step, `one step ${larger(formatQuantity(next), most)}`);
  for (const value of max === undefined ? [usual] : [usual, max]) {
    if ((units(value) - units(min)) % units(step) === 0n) continue;
    const rule = `value is not a multiple of a given step (${formatQuantity(step)}) from (${formatQuantity(min)})`;
    errors.push(fieldError.invalid(`${at}.step`, formatQuantity(value), rule));
  }
  return errors;
}
