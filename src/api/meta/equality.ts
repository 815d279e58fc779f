/**
 * Semantic equality as in upstream's `apiequality.Semantic.DeepEqual`: an absent field equals null, an empty list and
 * an empty map. Both sides must be decoded, so that quantities and times are canonical.
 */
export function semanticEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return isEmpty(a) && isEmpty(b);
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b)) return isEmpty(a) && isEmpty(b);
    return a.length === b.length && a.every((item, index) => semanticEqual(item, b[index]));
  }
  return sameFields(a as Fields, b as Fields, NOTHING);
}

/** Like `semanticEqual`, ignoring the fields `ignored`. */
export function semanticEqualBut(a: object, b: object, ignored: readonly string[]): boolean {
  return sameFields(a as Fields, b as Fields, ignored);
}

/** Equality of JSON values. In contrast to semantic equality, an empty value differs from an absent one. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => jsonEqual(item, b[index]));
  }
  const [left, right] = [a as Fields, b as Fields];
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && jsonEqual(left[key], right[key]))
  );
}

type Fields = Record<string, unknown>;

function sameFields(left: Fields, right: Fields, ignored: readonly string[]): boolean {
  const [own, others] = [Object.keys(left), Object.keys(right)];
  // An object without fields equals only an object without fields, not one whose fields are all empty.
  if (ignored === NOTHING && (own.length === 0 || others.length === 0)) return own.length === others.length;
  for (const key of own) {
    if (ignored.includes(key)) continue;
    if (!semanticEqual(left[key], Object.hasOwn(right, key) ? right[key] : undefined)) return false;
  }
  for (const key of others) {
    if (!Object.hasOwn(left, key) && !ignored.includes(key) && !isEmpty(right[key])) return false;
  }
  return true;
}

const NOTHING: readonly string[] = [];

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (typeof value !== 'object') return false;
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
}
