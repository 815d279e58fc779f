/** Options and results common to all simulations. */

export interface SimulationOptions<Bug> {
  readonly bug?: Bug;
  readonly keepTrace?: boolean;
}

/** A checked guarantee was violated. It names the checker that found it. */
export class Violation<Checker extends string> extends Error {
  readonly checker: Checker;
  constructor(checker: Checker, message: string) {
    super(`${checker}: ${message}`);
    this.name = 'Violation';
    this.checker = checker;
  }
}

export interface Finding<Checker extends string> {
  readonly checker: Checker | 'no surprise';
  readonly message: string;
}

/** Converts an error to a finding. An unexpected exception is a finding as well. */
export function findingOf<Checker extends string>(error: unknown): Finding<Checker> {
  if (error instanceof Violation) return { checker: error.checker as Checker, message: error.message };
  return { checker: 'no surprise', message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}

export interface SimulationResult<Checker extends string> {
  readonly seed: number;
  readonly hash: string;
  readonly violation: Finding<Checker> | undefined;
  readonly trace: readonly string[];
  /** Number of answered operations. */
  readonly answered: number;
  /** Number of committed entries or revisions. */
  readonly committed: number;
  /** Number of occurrences of interesting events. */
  readonly seen: ReadonlyMap<string, number>;
}
