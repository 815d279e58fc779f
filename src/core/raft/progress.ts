import { assert } from '../../base/errors.ts';

export type ProgressState = 'probe' | 'replicate' | 'snapshot';

/**
 * What the leader knows of a member's log. Everything up to `match` is known to agree; `next` is sent next. `probe`:
 * where the logs part is not known; one message at a time. `replicate`: messages are sent without waiting for answers,
 * within the bounds of what may be in flight. `snapshot`: the member is too far behind for the log; nothing is appended
 * until it has a snapshot.
 */
export class Progress {
  match = 0;
  next: number;
  state: ProgressState = 'probe';
  /** Heard of since the last check of the quorum. */
  active = false;
  /** It was in the period before: right after a quorum check no peer has been heard yet. */
  wasActive = false;
  /** The last heartbeat round that was answered. */
  round = 0;
  /** The commit index that was last sent along. */
  toldCommit = 0;
  /** A probe is out: wait for its answer or for a heartbeat's. */
  probing = false;
  /** The index from which entries are being read from disk for this member. */
  reading: number | undefined;
  snapshotIndex = 0;
  /** Ticks since the snapshot last made progress. */
  snapshotIdle = 0;
  #inflight: { readonly last: number; readonly bytes: number }[] = [];
  #inflightBytes = 0;
  readonly #maxMessages: number;
  readonly #maxBytes: number;

  constructor(next: number, maxMessages: number, maxBytes: number) {
    this.next = next;
    this.#maxMessages = maxMessages;
    this.#maxBytes = maxBytes;
  }

  get inflightMessages(): number {
    return this.#inflight.length;
  }

  get #full(): boolean {
    return this.#inflight.length >= this.#maxMessages || this.#inflightBytes >= this.#maxBytes;
  }

  get paused(): boolean {
    if (this.state === 'probe') return this.probing;
    return this.state === 'snapshot' || this.reading !== undefined || this.#full;
  }

  becomeProbe(): void {
    this.next = this.state === 'snapshot' ? Math.max(this.match, this.snapshotIndex) + 1 : this.match + 1;
    this.#reset('probe');
  }

  becomeReplicate(): void {
    this.next = this.match + 1;
    this.#reset('replicate');
  }

  becomeSnapshot(index: number): void {
    this.#reset('snapshot');
    this.snapshotIndex = index;
  }

  #reset(state: ProgressState): void {
    this.state = state;
    this.probing = false;
    this.reading = undefined;
    this.snapshotIndex = 0;
    this.snapshotIdle = 0;
    this.#inflight = [];
    this.#inflightBytes = 0;
  }

  /** An append with entries up to `last` has been sent. */
  sent(last: number, bytes: number): void {
    if (this.state === 'replicate') {
      assert(!this.#full, 'a paused member is sent nothing');
      this.next = last + 1;
      this.#inflight.push({ last, bytes });
      this.#inflightBytes += bytes;
    } else this.probing = true;
  }

  /** The member agrees up to `index`. False if that is no news. */
  accept(index: number): boolean {
    this.#free(index);
    if (index <= this.match) return false;
    this.match = index;
    this.next = Math.max(this.next, index + 1);
    this.probing = false;
    return true;
  }

  /**
   * The member refused an append after `refused`; the logs can agree at `agreement` at best. False if the refusal is
   * stale.
   */
  reject(refused: number, agreement: number): boolean {
    if (this.state === 'snapshot') return false;
    if (this.state === 'replicate') {
      if (refused <= this.match) return false;
      this.becomeProbe();
      return true;
    }
    // Only the answer to the probe that is out says something new.
    if (this.next - 1 !== refused) return false;
    this.next = Math.max(Math.min(refused, agreement + 1), this.match + 1);
    this.probing = false;
    return true;
  }

  /** The member is alive: what was lost on the way may be sent again, and a full window lets one message through. */
  alive(): void {
    this.active = true;
    this.probing = false;
    if (this.state === 'replicate' && this.#full) this.#free(this.#inflight[0]?.last ?? 0);
  }

  #free(index: number): void {
    let count = 0;
    for (const message of this.#inflight) {
      if (message.last > index) break;
      this.#inflightBytes -= message.bytes;
      count++;
    }
    if (count > 0) this.#inflight.splice(0, count);
  }
}
