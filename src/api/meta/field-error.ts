import { ApiError } from './status.ts';

/** Source: k8s.io/apimachinery/pkg/util/validation/field ErrorType. */
export type FieldErrorType =
  | 'FieldValueNotFound'
  | 'FieldValueRequired'
  | 'FieldValueDuplicate'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid'
  | 'InternalError';

/**
 * A validation error. `field` is a path such as `spec.containers[0].name`. `message` is upstream's `Error()` text
 * without the field.
 */
export interface FieldError {
  readonly type: FieldErrorType;
  readonly field: string;
  readonly message: string;
}

/** Maximum length of a value in an error, so that a large invalid value does not cause a larger response. */
const MAX_ECHO = 4096;
/** Maximum number of errors in one response. */
const MAX_FAILURES = 128;
/** Validation is aborted after this many errors, because a document of 3 MB can have millions. */
const MAX_FOUND = 20_000;

/** Errors of the current validation. A global variable is sufficient, because validation is synchronous. */
let found: { count: number; readonly first: FieldError[] } | undefined;

class GivenUp extends Error {}

/**
 * Runs a validation and returns its errors, or the first ones if it was aborted. `tries`: the validation checks a value
 * against alternatives. Errors of alternatives are not counted, because the validation has a limit of its own.
 */
export function failuresOf(validate: () => FieldError[], tries = false): FieldError[] {
  if (tries) return validate();
  const own = { count: 0, first: [] };
  found = own;
  try {
    return validate();
  } catch (error) {
    if (error instanceof GivenUp) return own.first;
    throw error;
  } finally {
    found = undefined;
  }
}

function noted(error: FieldError): FieldError {
  if (found === undefined) return error;
  found.count += 1;
  if (found.first.length < MAX_FAILURES) found.first.push(error);
  if (found.count > MAX_FOUND) throw new GivenUp();
  return error;
}

/** Marks an absent list, which an error shows as `null`. An absent value is shown as `"null"`. */
export const NULL: unique symbol = Symbol('null');

/** Marks a value that the message omits together with its separator. */
export const OMITTED: unique symbol = Symbol('omitted');

/**
 * JSON texts of objects in the errors of one response. They are cached, because thousands of errors can quote one list.
 */
let quoted: Map<object, string> | undefined;

function quote(value: unknown): string {
  if (value === NULL) return 'null';
  if (value === undefined || value === null) return '"null"';
  const known = typeof value === 'object' ? quoted?.get(value) : undefined;
  if (known !== undefined) return known;
  const text = startOfJson(value, MAX_ECHO + 1);
  const shown = text.length > MAX_ECHO ? `${text.slice(0, MAX_ECHO)}…` : text;
  if (typeof value === 'object') quoted?.set(value, shown);
  return shown;
}

/** Returns at least the first `length` characters of the JSON text, without serializing the rest of a large value. */
function startOfJson(value: unknown, length: number): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, length));
  if (typeof value !== 'object' || value === null || 'toJSON' in value) return JSON.stringify(value) ?? 'null';
  const isList = Array.isArray(value);
  let text = isList ? '[' : '{';
  for (const key of isList ? value.keys() : Object.keys(value)) {
    const item: unknown = value[key as keyof typeof value];
    if (!isList && item === undefined) continue;
    if (text.length > 1) text += ',';
    if (!isList) text += `${JSON.stringify(key)}:`;
    text += startOfJson(item, length - text.length);
    if (text.length >= length) return text;
  }
  return `${text}${isList ? ']' : '}'}`;
}

/** Supported values that an error shows. */
function supportedText(supported: readonly string[]): string {
  const shown = startOfJson(supported, MAX_ECHO + 1);
  if (shown.length > MAX_ECHO) return `${shown.slice(1, MAX_ECHO)}…`;
  return supported.map((each) => JSON.stringify(each)).join(', ');
}

/** Creates an error that composes its text when it is read. A validation can find thousands; a response shows few. */
function failure(type: FieldErrorType, field: string, message: () => string): FieldError {
  return noted({
    type,
    field,
    get message() {
      return message();
    },
  });
}

export const fieldError = {
  required: (field: string, detail = ''): FieldError =>
    noted({
      type: 'FieldValueRequired',
      field,
      message: `Required value${detail === '' ? '' : `: ${detail}`}`,
    }),
  invalid: (field: string, value: unknown, detail: string): FieldError =>
    failure('FieldValueInvalid', field, () =>
      value === OMITTED ? `Invalid value: ${detail}` : `Invalid value: ${quote(value)}: ${detail}`,
    ),
  notSupported: (field: string, value: unknown, supported: readonly string[]): FieldError =>
    failure(
      'FieldValueNotSupported',
      field,
      () => `Unsupported value: ${quote(value)}: supported values: ${supportedText(supported)}`,
    ),
  forbidden: (field: string, detail: string): FieldError =>
    noted({
      type: 'FieldValueForbidden',
      field,
      message: `Forbidden: ${detail}`,
    }),
  duplicate: (field: string, value: unknown): FieldError =>
    failure('FieldValueDuplicate', field, () => `Duplicate value: ${quote(value)}`),
  notFound: (field: string, value: unknown): FieldError =>
    failure('FieldValueNotFound', field, () => `Not found: ${quote(value)}`),
  tooMany: (field: string, actual: number, max: number): FieldError =>
    noted({
      type: 'FieldValueTooMany',
      field,
      message: `Too many: ${actual}: must have at most ${max} items`,
    }),
  tooLong: (field: string, maxBytes: number): FieldError =>
    noted({
      type: 'FieldValueTooLong',
      field,
      message: `Too long: may not be more than ${maxBytes} bytes`,
    }),
};

/** The 422 error for field errors (up to the limit), in the wording of upstream's `NewInvalid`. */
export function invalid(
  subject: { readonly group: string; readonly kind: string },
  name: string,
  all: readonly FieldError[],
): ApiError {
  quoted = new Map();
  const failures = all.slice(0, MAX_FAILURES).map(({ type, field, message }) => ({ type, field, message }));
  quoted = undefined;
  // The message contains equal errors once. The causes also contain the duplicates.
  const texts = [...new Set(failures.map((failure) => `${failure.field}: ${failure.message}`))];
  const text = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
  const kind = subject.group === '' ? subject.kind : `${subject.kind}.${subject.group}`;
  return new ApiError('Invalid', `${kind} "${name}" is invalid: ${text}`, {
    ...(name === '' ? {} : { name }),
    ...(subject.group === '' ? {} : { group: subject.group }),
    ...(subject.kind === '' ? {} : { kind: subject.kind }),
    causes: failures.map((failure) => ({ reason: failure.type, message: failure.message, field: failure.field })),
  });
}
