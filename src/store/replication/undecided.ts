import type { Clock, Timer } from '../../base/time/clock.ts';
import type { Pending } from './pending.ts';
import { leaderFailed, notLeader } from './refusals.ts';

/**
 * Proposals of a leader that lost leadership. The entry that is committed at the index of a proposal decides the
 * outcome: if the entry has the term of the proposal, the proposal is committed; otherwise, the proposal can never be
 * committed.
 */
export class Undecided {
  readonly #clock: Clock;
  #proposals: Pending[] = [];
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** After `mostMs` the outcome is reported as unknown. */
  add(proposals: readonly Pending[], mostMs: number): void {
    if (proposals.length === 0) return;
    this.#proposals.push(...proposals);
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimer(mostMs, () => this.rejectAll(leaderFailed()));
  }

  /**
   * Returns the proposals that became the entry at `index` of `term`, to be settled once it is applied. Other proposals
   * of that index were overwritten and are rejected with 'not-leader'.
   */
  committed(index: number, term: number): readonly Pending[] {
    if (this.#proposals.length === 0) return [];
    const here = this.#proposals.filter((pending) => pending.index === index);
    if (here.length === 0) return [];
    this.#proposals = this.#proposals.filter((pending) => pending.index !== index);
    for (const pending of here) if (pending.term !== term) pending.reject(notLeader());
    return here.filter((pending) => pending.term === term);
  }

  rejectAll(error: Error): void {
    this.#timer?.cancel();
    for (const pending of this.#proposals.splice(0)) pending.reject(error);
  }
}
