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

/** Resolves when others have had their turn: a whole round of the event loop. Where it is in its round, the first of the two may be just ahead. */
export async function giveTurn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/** So long somebody may go on, in milliseconds, before others have their turn. */
const TURN_MS = 8;

/**
 * Does all steps of something; others have their turn between them, as often as that takes its time. That is real time, as the event loop is the real one:
 * nothing that is worked out depends on it.
 */
export function inTurns<T>(steps: Iterator<undefined, T>): T | Promise<T> {
  const begunMs = performance.now();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() - begunMs > TURN_MS) return restInTurns(steps);
  }
}

async function restInTurns<T>(steps: Iterator<undefined, T>): Promise<T> {
  await giveTurn();
  for (let begunMs = performance.now(); ; ) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() - begunMs <= TURN_MS) continue;
    await giveTurn();
    begunMs = performance.now();
  }
}

/** What a strategy says that takes its time about judging; that it was not asked, where values are of wrong types, too many or missing. */
export async function judgement(
  strategy: Pick<WriteStrategy<KubeObject>, 'judge'>,
  object: KubeObject,
  old: KubeObject | undefined,
  failures: readonly FieldError[],
): Promise<readonly FieldError[]> {
  const steps = strategy.judge?.(object, old);
  if (steps === undefined) return NONE;
  if (failures.some((each) => BLOCKING.has(each.type))) return [NOT_JUDGED];
  return inTurns(steps);
}

const NONE: readonly FieldError[] = [];
/** What makes a value none that an expression could speak of. */
const BLOCKING: ReadonlySet<FieldError['type']> = new Set<FieldError['type']>([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);
const NOT_JUDGED: FieldError = {
  type: 'FieldValueInvalid',
  field: '<nil>',
  message:
    'Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
};
