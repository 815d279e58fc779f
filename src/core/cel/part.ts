/** What expressions are compiled to, and what they are compiled and run with. */
import type { Expr } from './ast.ts';
import type { FunctionTable } from './functions.ts';
import type { Type } from './types.ts';
import { BudgetError, type Value } from './values.ts';

/**
 * After pieces of work of this cost others have their turn: a few milliseconds, some tens where an operation is slow
 * for its cost.
 */
export const TURN_COST = 100_000;

/** What an evaluation may still cost. */
export class Budget {
  #left: number;
  constructor(limit: number) {
    this.#left = limit;
  }
  get left(): number {
    return this.#left;
  }
  /** Throws BudgetError when there is no more. */
  spend(cost: number): void {
    this.#left -= cost;
    if (this.#left < 0) throw new BudgetError();
  }
}

export interface Frame {
  readonly slots: Value[];
  readonly budget: Budget;
}

/** A part of an expression, checked. */
export interface Part {
  readonly type: Type;
  run(frame: Frame): Value;
  /** The most that running it can cost. */
  readonly cost: number;
  /** The most elements or characters that the result can have. */
  readonly size: number;
  /** Where a document has the value: what it may hold is known from its schema, as of what is made it is not. */
  readonly isPlace?: boolean;
  /** The value, when it is written in the expression. */
  readonly constant?: Value;
  /** As `constant`, also of lists and maps that hold nothing else. */
  readonly known?: Value;
  /** What a list that is written in the expression holds, and where. */
  readonly items?: readonly { readonly type: Type; readonly at: number }[];
}

/** What the compilation of one sort of expression needs of the compiler. */
export interface Compilation {
  /** Lists and maps may hold values of several types. */
  readonly mixing: boolean;
  structure(name: string): Structure | undefined;
  /** Records a failure at an offset of the source; the part that is returned stands for the expression. */
  fail(at: number, message: string): Part;
  /** Declares variables for as long as `work` runs. */
  within<T>(variables: readonly (readonly [string, Type])[], work: (slots: readonly number[]) => T): T;
  compile(expr: Expr): Part;
  variable(name: string): Part | undefined;
  mismatch(name: string, args: readonly Part[], at: number, member?: boolean): Part;
}

export type Structure = Extract<Type, { kind: 'object' }>;

export interface Environment {
  readonly functions: FunctionTable;
  readonly variables: ReadonlyMap<string, Type>;
  /** The types of which expressions can make messages; absent: there are none. */
  structure?(name: string): Structure | undefined;
}

export interface Program {
  readonly type: Type;
  /** The most that one evaluation can cost; Infinity when that is unknown. */
  readonly cost: number;
  /** Names of the variables that the expression uses. */
  readonly used: ReadonlySet<string>;
  /** Throws EvaluationError or BudgetError. `value` gives the variables; it is asked only for those that are used. */
  evaluate(value: (name: string) => Value, budget: Budget): Value;
}
