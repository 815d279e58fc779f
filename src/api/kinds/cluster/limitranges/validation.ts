/** Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateLimitRange. */

import {
  compareQuantity,
  formatQuantity,
  type Quantity,
  quantityMilliValue,
  quantityOf,
  tryParseQuantity,
} from '../../../../base/quantity.ts';
import type { LimitRange, LimitRangeItem } from '../../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isExtended, validateContainerResourceName } from '../../../podspec/containers/resources.ts';
import { validateQualifiedName, validateResourceTypeName } from '../../../validation/resource-names.ts';

const STANDARD_TYPES = new Set(['Pod', 'Container', 'PersistentVolumeClaim']);

export function validateLimitRange(range: LimitRange): FieldError[] {
  const errors: FieldError[] = [];
  const types = new Set<string>();
  (range.spec?.limits ?? []).forEach((item, index) => {
    const at = `spec.limits[${index}]`;
    const type = item.type ?? '';
    errors.push(...validateTypeName(type, `${at}.type`));
    if (types.has(type)) errors.push(fieldError.duplicate(`${at}.type`, type));
    types.add(type);
    errors.push(...validateItem(item, type, at));
  });
  return errors;
}

function validateTypeName(type: string, path: string): FieldError[] {
  const errors = validateQualifiedName(type, path);
  if (errors.length > 0 || type.includes('/') || STANDARD_TYPES.has(type)) return errors;
  return [fieldError.invalid(path, type, 'must be a standard limit type or fully qualified')];
}

const BOUNDS = ['max', 'min'] as const;
const DEFAULTS = ['default', 'defaultRequest'] as const;

function validateItem(item: LimitRangeItem, type: string, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  const validateName =
    type === 'Pod' || type === 'Container' ? validateContainerResourceName : validateResourceTypeName;
  const visit = (field: keyof LimitRangeItem & (typeof BOUNDS | typeof DEFAULTS)[number]): void => {
    for (const name of Object.keys(item[field] ?? {})) {
      errors.push(...validateName(name, `${at}.${field}[${name}]`));
      names.add(name);
    }
  };
  for (const field of BOUNDS) visit(field);
  for (const field of DEFAULTS) {
    if (type !== 'Pod') visit(field);
    else if (Object.keys(item[field] ?? {}).length > 0) {
      errors.push(fieldError.forbidden(`${at}.${field}`, "may not be specified when `type` is 'Pod'"));
    }
  }
  if (type === 'PersistentVolumeClaim' && item.min?.['storage'] === undefined && item.max?.['storage'] === undefined) {
    errors.push(
      fieldError.required(
        `${at}.limits`,
        'either minimum or maximum storage value is required, but neither was provided',
      ),
    );
  }
  for (const name of Object.keys(item.maxLimitRequestRatio ?? {})) {
    errors.push(...validateName(name, `${at}.maxLimitRequestRatio[${name}]`));
    names.add(name);
  }
  for (const name of names) errors.push(...validateAmounts(item, name, at));
  return errors;
}

function amount(values: Readonly<Record<string, string>> | undefined, name: string): Quantity | undefined {
  return values !== undefined && Object.hasOwn(values, name) ? tryParseQuantity(values[name]) : undefined;
}

const ONE = quantityOf(1);

/** Checks min ≤ default request ≤ default limit ≤ max for the values that are set. */
function validateAmounts(item: LimitRangeItem, name: string, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const min = amount(item.min, name);
  const max = amount(item.max, name);
  const limit = amount(item.default, name);
  const request = amount(item.defaultRequest, name);
  const ratio = amount(item.maxLimitRequestRatio, name);
  const ordered = (
    lower: Quantity | undefined,
    upper: Quantity | undefined,
    [field, shown, lowerNoun, upperNoun]: [string, Quantity | undefined, string, string],
  ): void => {
    if (lower === undefined || upper === undefined || shown === undefined || compareQuantity(lower, upper) <= 0) return;
    const detail = `${lowerNoun} value ${formatQuantity(lower)} is greater than ${upperNoun} value ${formatQuantity(upper)}`;
    errors.push(fieldError.invalid(`${at}.${field}[${name}]`, formatQuantity(shown), detail));
  };
  ordered(min, max, ['min', min, 'min', 'max']);
  ordered(min, request, ['defaultRequest', request, 'min', 'default request']);
  ordered(request, max, ['defaultRequest', request, 'default request', 'max']);
  ordered(request, limit, ['defaultRequest', request, 'default request', 'default limit']);
  ordered(min, limit, ['default', min, 'min', 'default']);
  ordered(limit, max, ['default', max, 'default', 'max']);
  if (ratio !== undefined) errors.push(...validateRatio(ratio, min, max, `${at}.maxLimitRequestRatio[${name}]`));
  const overcommitted = !isExtended(name) && !name.startsWith('hugepages-');
  if (!overcommitted && limit !== undefined && request !== undefined && compareQuantity(limit, request) !== 0) {
    const detail = `default value ${formatQuantity(limit)} must equal to defaultRequest value ${formatQuantity(request)} in ${name}`;
    errors.push(fieldError.invalid(`${at}.defaultRequest[${name}]`, formatQuantity(request), detail));
  }
  return errors;
}

function validateRatio(
  ratio: Quantity,
  min: Quantity | undefined,
  max: Quantity | undefined,
  path: string,
): FieldError[] {
  const text = formatQuantity(ratio);
  if (compareQuantity(ratio, ONE) < 0) return [fieldError.invalid(path, text, `ratio ${text} is less than 1`)];
  if (min === undefined || max === undefined) return [];
  const largest = quantityMilliValue(max) / quantityMilliValue(min);
  return quantityMilliValue(ratio) / 1000 > largest
    ? [fieldError.invalid(path, text, `ratio ${text} is greater than max/min = ${largest.toFixed(6)}`)]
    : [];
}
