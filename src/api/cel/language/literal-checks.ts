/** Errors of a call that are found at compile time. Source: cel-go's cel/validator.go. */

import type { Part } from '../compiled-expression.ts';
import { formatProblem } from '../format-checks.ts';
import type { Overload } from '../functions.ts';
import { EvaluationError } from '../values.ts';

/** Functions that parse a string. As upstream, an invalid literal is a compile error. */
const READERS: ReadonlyMap<string, string> = new Map([
  ['duration', 'duration'],
  ['timestamp', 'timestamp'],
  ['matches', 'matches'],
]);

interface LiteralProblem {
  readonly at: number;
  readonly message: string;
}

/**
 * Returns the problem of a call whose arguments are literals, for example an invalid duration; undefined if there is
 * none. `places`: positions of the arguments. `at`: position of the call.
 */
export function literalProblem(
  name: string,
  args: readonly Part[],
  [first]: readonly { readonly overload: Overload }[],
  places: readonly number[],
  at: number,
): LiteralProblem | undefined {
  if (name === 'format') return formatArgument(args, at);
  const label = READERS.get(name);
  const value = args.at(-1)?.constant;
  if (label === undefined || first === undefined) return undefined;
  if (typeof value !== 'string' && !(name === 'timestamp' && typeof value === 'bigint')) return undefined;
  try {
    first.overload.run(name === 'matches' ? ['', value] : [value]);
    return undefined;
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    return { at: places.at(-1) ?? at, message: `invalid ${label} argument` };
  }
}

function formatArgument([text, values]: readonly Part[], at: number): LiteralProblem | undefined {
  if (typeof text?.constant !== 'string') return undefined;
  const problem = formatProblem(
    text.constant,
    values?.items?.map(({ type }) => type),
  );
  if (problem === undefined) return undefined;
  const place = problem.index === undefined ? undefined : values?.items?.[problem.index]?.at;
  return { at: place ?? at, message: problem.message };
}

/** Functions that are evaluated at compile time if their arguments are constant. */
const CONVERSIONS: ReadonlySet<string> = new Set(['int', 'uint', 'double', 'string', 'bytes', 'bool']);
const PATTERNS: ReadonlySet<string> = new Set(['find', 'findAll']);

/** Returns the reason why a call with constant arguments always fails; undefined if the call can succeed. */
export function constantFailure(
  name: string,
  args: readonly Part[],
  [first]: readonly { readonly overload: Overload }[],
): string | undefined {
  const last = args[PATTERNS.has(name) ? 1 : 0]?.constant;
  if (first === undefined || last === undefined) return undefined;
  try {
    if (PATTERNS.has(name)) first.overload.run(['', last, 1n]);
    else if (CONVERSIONS.has(name) && args.length === 1) first.overload.run([last]);
    return undefined;
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    return error.message;
  }
}
