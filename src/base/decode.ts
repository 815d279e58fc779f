/**
 * Checks values from disk and network against a schema before they get a type. A schema consists of `text`, `number`,
 * `object` and so on. TypeScript derives the type from the schema. Values are not copied and unknown fields are kept,
 * so that a record of a newer release is preserved. Errors name the field: `claims.json: claims[2].uid: must be a
 * string`.
 */
import { CodedError, messageOf } from './errors.ts';

export interface Schema<T> {
  /**
   * Returns undefined for a valid value, otherwise a path relative to the value and the problem: `.uid: must be a
   * string`.
   */
  faultOf(value: unknown): string | undefined;
  /** Makes TypeScript infer T. It is never set. */
  readonly _type?: T;
}

/** Type of the values of a schema. */
export type Decoded<S> = S extends Schema<infer T> ? T : never;

const scalar = <T>(holds: (value: unknown) => boolean, problem: string): Schema<T> => ({
  faultOf: (value) => (holds(value) ? undefined : `: ${problem}`),
});

export const text: Schema<string> = scalar((value) => typeof value === 'string', 'must be a string');
export const number: Schema<number> = scalar((value) => typeof value === 'number', 'must be a number');
export const integer: Schema<number> = scalar(Number.isInteger, 'must be an integer');
export const flag: Schema<boolean> = scalar((value) => typeof value === 'boolean', 'must be true or false');
/** Schema that accepts any value, for fields that are checked where they are used. */
export const anything: Schema<unknown> = scalar(() => true, '');
/** Schema of an object whose fields are checked where they are used. */
export const fields: Schema<Readonly<Record<string, unknown>>> = scalar(isObject, 'must be an object');

export const oneOf = <const T extends string | number>(...values: readonly T[]): Schema<T> =>
  scalar((value) => values.some((each) => each === value), `must be one of ${values.join(', ')}`);

export const nullable = <T>(schema: Schema<T>): Schema<T | null> => ({
  faultOf: (value) => (value === null ? undefined : schema.faultOf(value)),
});

export const list = <T>(items: Schema<T>): Schema<readonly T[]> => ({
  faultOf(value) {
    if (!Array.isArray(value)) return ': must be a list';
    for (const [index, item] of value.entries()) {
      const fault = items.faultOf(item);
      if (fault !== undefined) return `[${index}]${fault}`;
    }
    return undefined;
  },
});

export const map = <T>(values: Schema<T>): Schema<Readonly<Record<string, T>>> => ({
  faultOf(value) {
    if (!isObject(value)) return ': must be an object';
    for (const [name, each] of Object.entries(value)) {
      const fault = values.faultOf(each);
      if (fault !== undefined) return `.${name}${fault}`;
    }
    return undefined;
  },
});

/** Schema of a field that may be absent. */
export interface Optional<T> {
  readonly optional: Schema<T>;
}

export const optional = <T>(schema: Schema<T>): Optional<T> => ({ optional: schema });

type Field = Schema<unknown> | Optional<unknown>;
type OptionalKeys<F> = { [K in keyof F]: F[K] extends Optional<unknown> ? K : never }[keyof F];
type Required<F> = { readonly [K in Exclude<keyof F, OptionalKeys<F>>]: Decoded<F[K]> };
type MayBeAbsent<F> = { readonly [K in OptionalKeys<F>]?: F[K] extends Optional<infer T> ? T : never };
/** Combines an intersection of object types into one object type, which the compiler shows in a readable form. */
type Flat<T> = { [K in keyof T]: T[K] };

export function object<F extends Readonly<Record<string, Field>>>(
  schemas: F,
): Schema<Flat<Required<F> & MayBeAbsent<F>>> {
  const entries = Object.entries<Field>(schemas);
  return {
    faultOf(value) {
      if (!isObject(value)) return ': must be an object';
      for (const [name, field] of entries) {
        const given = Object.hasOwn(value, name) ? value[name] : undefined;
        const isOptional = 'optional' in field;
        if (isOptional && given === undefined) continue;
        const fault = (isOptional ? field.optional : field).faultOf(given);
        if (fault !== undefined) return `.${name}${fault}`;
      }
      return undefined;
    },
  };
}

/**
 * Schema of a record that only this product writes. Only the fields of `schema` are checked; the other fields are
 * trusted to have their types in T.
 */
export const own = <T>(schema: Schema<unknown>): Schema<T> => ({ faultOf: (value) => schema.faultOf(value) });

/** Returns `value` with its type. `what` names the file or message in errors. Throws CodedError 'bad-value'. */
export function decode<T>(schema: Schema<T>, value: unknown, what: string): T {
  const fault = schema.faultOf(value);
  if (fault !== undefined) throw new CodedError('bad-value', `${what}: ${fault.replace(/^(?:\.|: )/, '')}`);
  return value as T;
}

/** Whether `value` is valid, for callers that skip invalid records. */
export function isValid<T>(schema: Schema<T>, value: unknown): value is T {
  return schema.faultOf(value) === undefined;
}

/** Like `decode`, for JSON text. Text that is not JSON causes a CodedError 'bad-value' too. */
export function decodeJson<T>(schema: Schema<T>, json: string, what: string): T {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new CodedError('bad-value', `${what}: not valid JSON: ${messageOf(error)}`, { cause: error });
  }
  return decode(schema, value, what);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
