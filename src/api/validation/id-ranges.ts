import { type FieldError, fieldError } from '../meta/field-error.ts';

/** Validates ranges of user or group IDs. Source: k8s.io/kubernetes/pkg/apis/policy/validation validateIDRanges. */
export function validateIdRanges(
  ranges: readonly { readonly min?: number; readonly max?: number }[] | null | undefined,
  path: string,
): FieldError[] {
  const found: FieldError[] = [];
  for (const [index, { min = 0, max = 0 }] of (ranges ?? []).entries()) {
    const at = `${path}[${index}]`;
    if (min < 0) found.push(fieldError.invalid(`${at}.min`, min, 'min cannot be negative'));
    if (max < 0) found.push(fieldError.invalid(`${at}.max`, max, 'max cannot be negative'));
    if (min > max) found.push(fieldError.invalid(`${at}.min`, min, 'min cannot be greater than max'));
  }
  return found;
}
