/** Validation of CSI driver names. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateCSIDriverName. */
import { dns1123SubdomainErrors } from '../../base/names.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';

const MAX_DRIVER_NAME = 63;

export function validateDriverName(name: string, path: string): FieldError[] {
  return [
    ...(name === '' ? [fieldError.required(path)] : []),
    ...(name.length > MAX_DRIVER_NAME ? [fieldError.tooLong(path, MAX_DRIVER_NAME)] : []),
    ...dns1123SubdomainErrors(name.toLowerCase()).map((why) => fieldError.invalid(path, name, why)),
  ];
}
