/** Compiled form of expressions, and the interfaces for compiling and running them. */

import type { FunctionTable } from './functions.ts';
import type { Expr } from './language/ast.ts';
import type { Type } from './types.ts';
import { BudgetError, type Value } from './values.ts';

/**
 * Cost after which an evaluation yields to the event loop. It corresponds to a few milliseconds, or to some tens of
 * milliseconds for operations that are slow in relation to their cost.
 */
export const TURN_COST = 100_000;

/** Remaining cost of an evaluation. */
export class Budget {
  #left: number;
  constructor(limit: number) {
    this.#left = limit;
  }
  get left(): number {
    return this.#left;
  }
  /** Throws BudgetError when the budget is used up. */
  spend(cost: number): void {
    this.#left -= cost;
    if (this.#left < 0) throw new BudgetError();
  }
}

export interface Frame {
  readonly slots: Value[];
  readonly budget: Budget;
}

export interface Part {
  readonly type: Type;
  run(frame: Frame): Value;
  readonly cost: number;
  /** Maximum number of elements or characters of the result. */
  readonly size: number;
  /** True for a value of a document, whose size its schema limits; false for a computed value. */
  readonly isPlace?: boolean;
  /** The value of a literal. */
  readonly constant?: Value;
  /** Like `constant`, but also for lists and maps of constants. */
  readonly known?: Value;
  /** Types and positions of the items of a list literal. */
  readonly items?: readonly { readonly type: Type; readonly at: number }[];
}

/** Interface of the compiler for the modules that compile one kind of expression. */
export interface Compilation {
  /** True if lists and maps may contain several types. */
  readonly mixing: boolean;
  structure(name: string): Structure | undefined;
  /** Records an error at an offset of the source. The returned part replaces the expression. */
  fail(at: number, message: string): Part;
  /** Declares variables while `work` runs. */
  within<T>(variables: readonly (readonly [string, Type])[], work: (slots: readonly number[]) => T): T;
  compile(expr: Expr): Part;
  variable(name: string): Part | undefined;
  mismatch(name: string, args: readonly Part[], at: number, member?: boolean): Part;
}

export type Structure = Extract<Type, { kind: 'object' }>;

export interface Environment {
  readonly functions: FunctionTable;
  readonly variables: ReadonlyMap<string, Type>;
  /** Returns a message type that expressions can construct. Absent: expressions cannot construct messages. */
  structure?(name: string): Structure | undefined;
}

export interface Program {
  readonly type: Type;
  /** Maximum cost of one evaluation; Infinity if unknown. */
  readonly cost: number;
  /** Names of the variables that the expression uses. */
  readonly used: ReadonlySet<string>;
  /**
   * Evaluates the expression. Throws EvaluationError or BudgetError. `value` returns the value of a variable and is
   * called only for variables that the expression uses.
   */
  evaluate(value: (name: string) => Value, budget: Budget): Value;
}
