/**
 * Build objects whose optional fields are absent instead of undefined. Types with optional fields require this
 * (`exactOptionalPropertyTypes`), and so do comparisons of objects and their text.
 */

type Optional<T> = { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> };
type Required<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] };

/** The fields whose value is not undefined, in the same order. */
export function omitUndefined<T extends object>(fields: T): Required<T> & Optional<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Required<T> &
    Optional<T>;
}

/**
 * The fields that Go encodes with the option `omitempty`, in the same order: undefined, null, 0, false, the empty text,
 * and lists and maps without items are omitted.
 */
export function omitEmpty<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined | null> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value))) as ReturnType<
    typeof omitEmpty<T>
  >;
}

function isEmpty(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return !value;
  return (Array.isArray(value) ? value : Object.keys(value)).length === 0;
}
