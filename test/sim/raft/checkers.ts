import type { Entry } from '../../../src/store/core/raft/types.ts';
import { Violation as BrokenPromise } from '../outcome.ts';
import type { LogFile } from './disk.ts';

export type CheckerName =
  | 'election safety'
  | 'log matching'
  | 'leader completeness'
  | 'state machine safety'
  | 'linearizability'
  | 'liveness'
  | 'no surprise';

/** A guarantee of raft (paper, figure 3) or of the store was violated. */
export class Violation extends BrokenPromise<CheckerName> {}

interface Applied {
  readonly term: number;
  readonly entry: Entry;
}

/** Checks invariants with a view of all members at once. */
export class Checkers {
  readonly #leaders = new Map<number, string>();
  readonly #entries = new Map<string, { readonly entry: Entry; readonly before: number }>();
  readonly #applied = new Map<number, Applied>();
  highestApplied = 0;

  /** Election safety: at most one leader per term. Leader completeness: its log contains every committed entry. */
  elected(id: string, term: number, log: LogFile): void {
    const other = this.#leaders.get(term);
    if (other !== undefined && other !== id)
      throw new Violation('election safety', `${other} and ${id} lead in term ${term}`);
    if (other !== undefined) return;
    this.#leaders.set(term, id);
    for (let index = log.base.index + 1; index <= this.highestApplied; index++) {
      const committed = this.#applied.get(index);
      if (committed !== undefined && committed.term < term && log.term(index) !== committed.term)
        throw new Violation(
          'leader completeness',
          `${id} leads term ${term} without entry ${index} of term ${committed.term}`,
        );
    }
  }

  /**
   * Log matching: entries with the same index and term are equal, and so are all entries before them (by induction: the
   * previous term).
   */
  appended(id: string, entries: readonly Entry[], termBefore: number | undefined): void {
    let before = termBefore;
    for (const entry of entries) {
      const key = `${entry.index}@${entry.term}`;
      const known = this.#entries.get(key);
      if (before === undefined) throw new Violation('log matching', `the log of ${id} has no entry before ${key}`);
      if (known === undefined) this.#entries.set(key, { entry, before });
      else if (!same(known.entry, entry) || known.before !== before)
        throw new Violation('log matching', `entry ${key} of ${id} differs from the entry of other members`);
      before = entry.term;
    }
  }

  /** State machine safety: no two members apply different entries at an index, and none skips an index. */
  applied(id: string, entry: Entry, appliedBefore: number): void {
    if (entry.index !== appliedBefore + 1)
      throw new Violation('state machine safety', `${id} applies ${entry.index} after ${appliedBefore}`);
    const known = this.#applied.get(entry.index);
    if (known === undefined) this.#applied.set(entry.index, { term: entry.term, entry });
    else if (!same(known.entry, entry))
      throw new Violation(
        'state machine safety',
        `entry ${entry.index} that ${id} applies differs from the entry that other members applied`,
      );
    this.highestApplied = Math.max(this.highestApplied, entry.index);
  }
}

function same(a: Entry, b: Entry): boolean {
  if (a === b) return true;
  if (a.term !== b.term || a.kind !== b.kind) return false;
  if (a.kind === 'data' && b.kind === 'data') return Buffer.compare(a.data, b.data) === 0;
  return a.kind !== 'conf' || b.kind !== 'conf' || JSON.stringify(a.change) === JSON.stringify(b.change);
}
