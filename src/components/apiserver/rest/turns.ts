/**
 * Turns for others between the steps of a large write. Each step is one pass over the object, a few tens of milliseconds for the largest there are; all of
 * them without a pause would hold up everybody for as long as they take together.
 */

import { setImmediate } from 'node:timers/promises';
import type { FieldError } from '../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import type { WriteStrategy } from '../../../api/registry/definition.ts';

const LARGE = 128 * 1024;

export const isLarge = (bytes = 0): boolean => bytes >= LARGE;

/** Resolves when others have had their turn. */
export const giveTurn = (): Promise<void> => setImmediate();

/** Does all steps of something; others have their turn between any two. What takes one step is done at once. */
export function inTurns<T>(steps: Iterator<undefined, T>): T | Promise<T> {
  const first = steps.next();
  return first.done === true ? first.value : restInTurns(steps);
}

async function restInTurns<T>(steps: Iterator<undefined, T>): Promise<T> {
  for (;;) {
    await giveTurn();
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** What a strategy says that takes its time about judging; nothing where a value has a wrong type, which is no value for an expression. */
export async function judgement(
  strategy: Pick<WriteStrategy<KubeObject>, 'judge'>,
  object: KubeObject,
  old: KubeObject | undefined,
  failures: readonly FieldError[],
): Promise<readonly FieldError[]> {
  const steps = strategy.judge?.(object, old);
  if (steps === undefined || failures.some((each) => each.type === 'FieldValueTypeInvalid')) return NONE;
  return inTurns(steps);
}

const NONE: readonly FieldError[] = [];
