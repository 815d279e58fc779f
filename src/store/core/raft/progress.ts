import { assert } from '../../../base/errors.ts';

export type ProgressState = 'probe' | 'replicate' | 'snapshot';

/**
 * The leader's view of a member's log. Entries up to `match` are known to agree; `next` is the index of the next entry
 * to send.
 *
 * - `probe`: the index at which the logs diverge is unknown; one message is sent at a time.
 * - `replicate`: messages are sent without waiting for responses, up to the in-flight limits.
 * - `snapshot`: the log no longer has the entries that the member needs; no entries are sent until the member has a
 *   snapshot.
 */
export class Progress {
  match = 0;
  next: number;
  state: ProgressState = 'probe';
  /** A message arrived since the last quorum check. */
  active = false;
  /** Value of `active` at the last quorum check, which resets `active` for every member. */
  wasActive = false;
  /** Last heartbeat round that the member answered. */
  round = 0;
  /** Commit index last sent to the member. */
  sentCommit = 0;
  /** A probe is in flight; no further message is sent before its response or a heartbeat response. */
  probing = false;
  /** Index from which entries are being read from disk for this member. */
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

  /** Records that an append with entries up to `last` was sent. */
  sent(last: number, bytes: number): void {
    if (this.state === 'replicate') {
      assert(!this.#full, 'no message is sent to a paused member');
      this.next = last + 1;
      this.#inflight.push({ last, bytes });
      this.#inflightBytes += bytes;
    } else this.probing = true;
  }

  /** Records that the logs agree up to `index`. Returns false if that was already known. */
  accept(index: number): boolean {
    this.#free(index);
    if (index <= this.match) return false;
    this.match = index;
    this.next = Math.max(this.next, index + 1);
    this.probing = false;
    return true;
  }

  /**
   * Records that the member rejected the append after `refused`. The logs can agree up to `agreement` at most. Returns
   * false if the rejection is outdated.
   */
  reject(refused: number, agreement: number): boolean {
    if (this.state === 'snapshot') return false;
    if (this.state === 'replicate') {
      if (refused <= this.match) return false;
      this.becomeProbe();
      return true;
    }
    // Only a response to the outstanding probe carries new information.
    if (this.next - 1 !== refused) return false;
    this.next = Math.max(Math.min(refused, agreement + 1), this.match + 1);
    this.probing = false;
    return true;
  }

  /**
   * Records a response of the member: a lost probe may be sent again, and a full in-flight window lets one message
   * through.
   */
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
