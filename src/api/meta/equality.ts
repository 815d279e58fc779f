/**
 * Equality of documents as upstream's `apiequality.Semantic.DeepEqual` sees it: an absent field equals an empty list, an empty map
 * and null. Both sides must have been decoded, so that quantities and times are canonical.
 */
export function semanticEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isEmpty(a) || isEmpty(b)) return isEmpty(a) && isEmpty(b);
  if (typeof a !== 'object' || typeof b !== 'object') return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => semanticEqual(item, b[index]));
  }
  return semanticEqualBut(a as object, b as object, NOTHING);
}

/** As `semanticEqual`, of two objects whose fields `ignored` are not looked at. */
export function semanticEqualBut(a: object, b: object, ignored: readonly string[]): boolean {
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  for (const key of Object.keys(left)) {
    if (ignored.includes(key)) continue;
    if (!semanticEqual(left[key], Object.hasOwn(right, key) ? right[key] : undefined)) return false;
  }
  for (const key of Object.keys(right)) {
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
