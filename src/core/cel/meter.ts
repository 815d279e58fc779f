/**
 * Where work pays for itself that only shows while it is done: comparing what is nested, writing out what is long.
 * Evaluations do not wait, so one is under way at a time, or one within another.
 */
import type { Budget } from './part.ts';

let current: Budget | undefined;

/** Runs `work`; what it spends is taken from `budget`. */
export function metered<T>(budget: Budget, work: () => T): T {
  const outer = current;
  current = budget;
  try {
    return work();
  } finally {
    current = outer;
  }
}

/** Throws BudgetError when there is no more; free outside an evaluation. */
export function spend(cost: number): void {
  current?.spend(cost);
}
