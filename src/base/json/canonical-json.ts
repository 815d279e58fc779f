const isUndefined = (value: unknown): boolean => value === undefined;

/**
 * JSON with sorted keys, so that objects with equal fields have equal text. Annotations and names of objects contain
 * hashes of this text, so it must be stable across releases. `isAbsent`: whether a field with this value is omitted.
 */
export function canonicalJson(value: unknown, isAbsent: (field: unknown) => boolean = isUndefined): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map((each) => canonicalJson(each, isAbsent)).join(',')}]`;
  const fields = Object.entries(value)
    .filter(([, field]) => !isAbsent(field))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field, isAbsent)}`);
  return `{${fields.join(',')}}`;
}
