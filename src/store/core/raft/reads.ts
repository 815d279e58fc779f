import type { NodeId, ReadContext } from './types.ts';

interface PendingRead {
  readonly context: ReadContext;
  /** The follower that requested the read; undefined for the leader itself. */
  readonly from: NodeId | undefined;
}
interface ConfirmingRead extends PendingRead {
  readonly index: number;
  readonly round: number;
}

/**
 * Pending linearizable reads (thesis §6.4). At the leader, a read first waits until an entry of the leader's term is
 * committed, then until a quorum responds to a heartbeat sent after the read was registered. At a follower, a read
 * waits for the leader's response. The result does not depend on clocks.
 */
export class PendingReads {
  /** Last broadcast round of this term. */
  round = 0;
  /** A read waits for a round that has not been sent. */
  roundPending = false;
  #early: PendingRead[] = [];
  #confirming: ConfirmingRead[] = [];
  readonly #forwarded = new Map<ReadContext, number>();

  get size(): number {
    return this.#early.length + this.#confirming.length + this.#forwarded.size;
  }

  /**
   * Holds a read until the leader has committed an entry of its term, because until then its commit index may be
   * outdated.
   */
  postpone(read: PendingRead): void {
    this.#early.push(read);
  }

  takeEarly(): PendingRead[] {
    return this.#early.splice(0);
  }

  add(read: PendingRead, index: number): void {
    this.#confirming.push({ ...read, index, round: this.round + 1 });
    this.roundPending = true;
  }

  /** Removes and returns the reads whose round a quorum has answered. */
  confirmed(round: number): ConfirmingRead[] {
    let count = 0;
    while ((this.#confirming[count]?.round ?? Number.POSITIVE_INFINITY) <= round) count++;
    return count === 0 ? [] : this.#confirming.splice(0, count);
  }

  forward(context: ReadContext, deadline: number): void {
    this.#forwarded.set(context, deadline);
  }

  /** Returns false if no read waits for that response any more. */
  answered(context: ReadContext): boolean {
    return this.#forwarded.delete(context);
  }

  /** Removes and returns the reads that the leader did not answer in time. */
  expired(now: number): ReadContext[] {
    const aborted: ReadContext[] = [];
    for (const [context, deadline] of this.#forwarded) {
      if (deadline > now) break;
      aborted.push(context);
    }
    for (const context of aborted) this.#forwarded.delete(context);
    return aborted;
  }

  /** Aborts all reads. Returns the reads that this member itself requested. */
  abort(): ReadContext[] {
    const own = [...this.#early, ...this.#confirming].filter((read) => read.from === undefined);
    const aborted = [...own.map((read) => read.context), ...this.#forwarded.keys()];
    this.#early = [];
    this.#confirming = [];
    this.#forwarded.clear();
    this.round = 0;
    this.roundPending = false;
    return aborted;
  }
}
