/** What can be told of a call before it is run. Source: cel-go's cel/validator.go. */
import type { Overload } from './functions.ts';
import type { Part } from './part.ts';
import { EvaluationError } from './values.ts';

/** Texts that are written out where something reads them: what cannot be read is wrong before it is run, as upstream. */
const READERS: ReadonlyMap<string, string> = new Map([
  ['duration', 'duration'],
  ['timestamp', 'timestamp'],
  ['matches', 'matches'],
]);

/** What is wrong with a text that is written out; undefined: nothing, or it is none. */
export function literalProblem(
  name: string,
  args: readonly Part[],
  [first]: readonly { readonly overload: Overload }[],
): string | undefined {
  const label = READERS.get(name);
  const constants = args.flatMap(({ constant }) => (typeof constant === 'string' ? [constant] : []));
  const pattern = constants.at(-1);
  if (label === undefined || pattern === undefined || first === undefined) return undefined;
  if (name === 'matches' && typeof args.at(-1)?.constant !== 'string') return undefined;
  try {
    first.overload.run(name === 'matches' ? ['', pattern] : [pattern]);
    return undefined;
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    return `invalid ${label} argument`;
  }
}
