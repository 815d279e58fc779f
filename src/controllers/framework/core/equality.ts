import { canonicalJson } from '../../../base/json/canonical-json.ts';

/**
 * Compares API objects as JSON: an absent field equals null and an empty list. An empty object differs from an absent
 * field, as in `emptyDir: {}`; `semanticEqual` in `api/meta` ignores this difference too.
 */
export function equalIgnoringEmptyLists(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isEmpty(a) && isEmpty(b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((each, index) => equalIgnoringEmptyLists(each, b[index]));
  }
  const left = a as Readonly<Record<string, unknown>>;
  const right = b as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(left)) {
    if (!equalIgnoringEmptyLists(left[key], Object.hasOwn(right, key) ? right[key] : undefined)) return false;
  }
  for (const key of Object.keys(right)) {
    if (!Object.hasOwn(left, key) && !isEmpty(right[key])) return false;
  }
  return true;
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}

/** Canonical JSON without the fields that `equalIgnoringEmptyLists` considers absent. */
export const jsonIgnoringEmptyLists = (value: unknown): string => canonicalJson(value, isEmpty);
