/** What a run of a simulation is asked for and what it says, whatever is simulated. */

export interface SimulationOptions<Bug> {
  readonly bug?: Bug;
  readonly keepTrace?: boolean;
}

/** A promise has been broken; the checker that saw it. */
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

/** Whatever a program throws where nothing should go wrong is a finding as well. */
export function findingOf<Checker extends string>(error: unknown): Finding<Checker> {
  if (error instanceof Violation) return { checker: error.checker as Checker, message: error.message };
  return { checker: 'no surprise', message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}

export interface SimulationResult<Checker extends string> {
  readonly seed: number;
  readonly hash: string;
  readonly violation: Finding<Checker> | undefined;
  readonly trace: readonly string[];
  /** Operations that were answered. */
  readonly answered: number;
  /** Entries or revisions that were committed. */
  readonly committed: number;
  /** What the run has seen of interest. */
  readonly seen: ReadonlyMap<string, number>;
}
