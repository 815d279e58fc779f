/** Errors of a call that are known before it is evaluated. Source: cel-go's cel/validator.go. */
import { formatProblem } from './format-checks.ts';
import type { Overload } from './functions.ts';
import type { Part } from './part.ts';
import { EvaluationError } from './values.ts';

/**
 * Texts that are written out where something reads them: what cannot be read is wrong before it is run, as upstream.
 */
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
 * What is wrong with texts that are written out; undefined: nothing, or there are none. `places`: where the arguments
 * stand, `at` the call.
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

/** What always gives the same is worked out when an expression is made ready; what fails then, fails for good. */
const CONVERSIONS: ReadonlySet<string> = new Set(['int', 'uint', 'double', 'string', 'bytes', 'bool']);
const PATTERNS: ReadonlySet<string> = new Set(['find', 'findAll']);

/** Why a call can never succeed; undefined: it can. */
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
