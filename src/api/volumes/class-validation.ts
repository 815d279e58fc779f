/**
 * Validation that storage classes and volume attributes classes share: driver and parameters. Source:
 * k8s.io/kubernetes/pkg/apis/storage/validation.
 */
import { qualifiedNameErrors } from '../../base/names.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet, utf8Length } from '../meta/validation.ts';
import { validateNameRule } from '../validation/scalars.ts';

const MAX_PARAMETERS = 512;
const MAX_PARAMETERS_BYTES = 256 * 1024;

export function validateDriver(driver: string | undefined, field: string): FieldError[] {
  return isSet(driver)
    ? validateNameRule(driver.toLowerCase(), qualifiedNameErrors, field)
    : [fieldError.required(field)];
}

export function validateClassParameters(parameters: Readonly<Record<string, string>> = {}): FieldError[] {
  const entries = Object.entries(parameters);
  if (entries.length > MAX_PARAMETERS) {
    return [fieldError.tooLong('parameters', MAX_PARAMETERS)];
  }
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const [name, value] of entries) {
    if (name === '') errors.push(fieldError.invalid('parameters', name, 'field can not be empty.'));
    bytes += utf8Length(name) + utf8Length(value);
  }
  if (bytes > MAX_PARAMETERS_BYTES) errors.push(fieldError.tooLong('parameters', MAX_PARAMETERS_BYTES));
  return errors;
}
