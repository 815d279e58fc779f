/** Validation of single values, with upstream's errors. */
import { ipFamilyOf } from '../../base/addresses/addresses.ts';
import { portNameErrors, portNumberErrors, qualifiedNameErrors } from '../../base/names.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';

export function validateNonNegative(value: number | undefined, path: string): FieldError[] {
  return value !== undefined && value < 0
    ? [fieldError.invalid(path, value, 'must be greater than or equal to 0')]
    : [];
}

export function validatePositive(value: number | undefined, path: string): FieldError[] {
  return value !== undefined && value <= 0 ? [fieldError.invalid(path, value, 'must be greater than 0')] : [];
}

export function validateRange(value: number | undefined, min: number, max: number, path: string): FieldError[] {
  return value !== undefined && (value < min || value > max)
    ? [fieldError.invalid(path, value, `must be between ${min} and ${max}, inclusive`)]
    : [];
}

/** Requires one of the given values. An absent or empty value is a "required" error. */
export function validateOneOf(value: string | undefined, supported: readonly string[], path: string): FieldError[] {
  return isSet(value) ? validateOptionalOneOf(value, supported, path) : [fieldError.required(path)];
}

/** Accepts an absent value and the given values. An empty value is accepted only if it is one of them. */
export function validateOptionalOneOf(
  value: string | undefined,
  supported: readonly string[],
  path: string,
): FieldError[] {
  if (value === undefined || supported.includes(value)) return [];
  return [fieldError.notSupported(path, value, supported)];
}

export function validatePortNumber(port: number | undefined, path: string): FieldError[] {
  return portNumberErrors(port ?? 0).map((message) => fieldError.invalid(path, port ?? 0, message));
}

/** Requires an IANA service name or a name with a domain. */
export function validateAppProtocol(protocol: string | undefined, path: string): FieldError[] {
  return protocol === undefined ? [] : validateNameRule(protocol, qualifiedNameErrors, path);
}

/** Requires a port number or an IANA service name. */
export function validatePortNumberOrName(port: number | string | undefined, path: string): FieldError[] {
  if (typeof port !== 'string') return validatePortNumber(port, path);
  return portNameErrors(port).map((message) => fieldError.invalid(path, port, message));
}

/** Reports one error per message of a name rule. */
export function validateNameRule(
  value: string,
  rule: (value: string) => readonly string[],
  path: string,
): FieldError[] {
  return rule(value).map((message) => fieldError.invalid(path, value, message));
}

const PERCENT = /^\d+%$/;

/** Requires a count or a percentage such as `25%`. */
export function validateCountOrPercent(value: number | string | undefined, path: string): FieldError[] {
  if (typeof value === 'number') return validateNonNegative(value, path);
  if (typeof value === 'string' && !PERCENT.test(value)) {
    return [
      fieldError.invalid(
        path,
        value,
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
      ),
    ];
  }
  return [];
}

/** The number in `25%`; undefined for counts. */
export function percentOf(value: number | string | undefined): number | undefined {
  return typeof value === 'string' && PERCENT.test(value) ? Number(value.slice(0, -1)) : undefined;
}

/** Requires a relative path without `..`, because paths in volumes are joined to host paths. */
export function validateLocalPath(path: string, at: string): FieldError[] {
  const errors: FieldError[] = [];
  if (path.startsWith('/')) errors.push(fieldError.invalid(at, path, 'must be a relative path'));
  errors.push(...validateNoBacksteps(path, at));
  return errors;
}

export function validateNoBacksteps(path: string, at: string): FieldError[] {
  return path.split('/').includes('..') ? [fieldError.invalid(at, path, "must not contain '..'")] : [];
}

export function validateIp(text: string, path: string): FieldError[] {
  return ipFamilyOf(text) === 0
    ? [fieldError.invalid(path, text, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')]
    : [];
}

export function validateCidr(text: string, path: string): FieldError[] {
  const slash = text.indexOf('/');
  const family = slash < 0 ? 0 : ipFamilyOf(text.slice(0, slash));
  const bits = /^(?:0|[1-9]\d{0,2})$/.test(text.slice(slash + 1)) ? Number(text.slice(slash + 1)) : 999;
  return family === 0 || bits > (family === 4 ? 32 : 128)
    ? [fieldError.invalid(path, text, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')]
    : [];
}
