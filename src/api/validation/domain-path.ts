/**
 * Validation of names such as `example.com/controller`. Source: k8s.io/apimachinery/pkg/util/validation
 * IsDomainPrefixedPath.
 */
import { dns1123SubdomainErrors } from '../../base/names.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';

const PATH = /^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/;

export function validateDomainPath(value: string, path: string): FieldError[] {
  if (value === '') return [fieldError.required(path)];
  const slash = value.indexOf('/');
  if (slash <= 0 || slash === value.length - 1) {
    return [fieldError.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')];
  }
  const errors = dns1123SubdomainErrors(value.slice(0, slash)).map((message) =>
    fieldError.invalid(path, value.slice(0, slash), message),
  );
  const rest = value.slice(slash + 1);
  if (!PATH.test(rest)) {
    errors.push(
      fieldError.invalid(
        path,
        rest,
        "a valid path must consist of characters that may stand in a URL's path (e.g. 'foo/bar', regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')",
      ),
    );
  }
  return errors;
}
