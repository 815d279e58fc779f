/**
 * Charges costs that are known only during the work, such as comparing nested values or formatting long ones. The
 * current budget is a global variable, because evaluations are synchronous.
 */
import type { Budget } from './compiled-expression.ts';

let current: Budget | undefined;

/** Runs `work` and charges its costs to `budget`. */
export function withBudget<T>(budget: Budget, work: () => T): T {
  const outer = current;
  current = budget;
  try {
    return work();
  } finally {
    current = outer;
  }
}

/** Throws BudgetError when the budget is used up. Does nothing outside an evaluation. */
export function chargeCost(cost: number): void {
  current?.spend(cost);
}
