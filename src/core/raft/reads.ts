import type { NodeId, ReadContext } from './types.ts';

interface PendingRead {
  readonly context: ReadContext;
  /** The follower that asked; undefined for the leader's own shell. */
  readonly from: NodeId | undefined;
}
interface ConfirmingRead extends PendingRead {
  readonly index: number;
  readonly round: number;
}

/**
 * Reads that wait (thesis §6.4). At the leader: first for an entry of its own term to be committed, then for a quorum
 * to answer a heartbeat that was sent after they were asked. At a follower: for the leader's answer. No clock is
 * trusted.
 */
export class PendingReads {
  /** The last broadcast round of this term. */
  round = 0;
  /** Some read waits for a round that has not been sent. */
  roundWanted = false;
  #early: PendingRead[] = [];
  #confirming: ConfirmingRead[] = [];
  readonly #forwarded = new Map<ReadContext, number>();

  get size(): number {
    return this.#early.length + this.#confirming.length + this.#forwarded.size;
  }

  /** Before the leader has committed anything in its term it does not know what is committed. */
  postpone(read: PendingRead): void {
    this.#early.push(read);
  }

  takeEarly(): PendingRead[] {
    return this.#early.splice(0);
  }

  add(read: PendingRead, index: number): void {
    this.#confirming.push({ ...read, index, round: this.round + 1 });
    this.roundWanted = true;
  }

  /** Reads whose round a quorum has answered. */
  confirmed(round: number): ConfirmingRead[] {
    let count = 0;
    while ((this.#confirming[count]?.round ?? Number.POSITIVE_INFINITY) <= round) count++;
    return count === 0 ? [] : this.#confirming.splice(0, count);
  }

  forward(context: ReadContext, deadline: number): void {
    this.#forwarded.set(context, deadline);
  }

  /** False if no read waits for that answer any more. */
  answered(context: ReadContext): boolean {
    return this.#forwarded.delete(context);
  }

  /** Reads that the leader has not answered in time. */
  expired(now: number): ReadContext[] {
    const gone: ReadContext[] = [];
    for (const [context, deadline] of this.#forwarded) {
      if (deadline > now) break;
      gone.push(context);
    }
    for (const context of gone) this.#forwarded.delete(context);
    return gone;
  }

  /** Gives everything up; returns what this member's own shell had asked. */
  abort(): ReadContext[] {
    const own = [...this.#early, ...this.#confirming].filter((read) => read.from === undefined);
    const gone = [...own.map((read) => read.context), ...this.#forwarded.keys()];
    this.#early = [];
    this.#confirming = [];
    this.#forwarded.clear();
    this.round = 0;
    this.roundWanted = false;
    return gone;
  }
}
