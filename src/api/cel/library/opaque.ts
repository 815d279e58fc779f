/** Common parts of the libraries of opaque types. */
import { type Costs, perCharacter } from '../functions.ts';
import { EvaluationError, type Opaque } from '../values.ts';

/** Costs of a function that parses an opaque value from a text, which takes as long as several ordinary steps. */
export const reads: Costs = {
  cost: ([text = 0]) => perCharacter(text) + 8,
  estimate: ([text = 0]) => perCharacter(text),
};

export const of = <T>(value: Opaque): T => value.value as T;

export function fail(message: string): never {
  throw new EvaluationError(message);
}
