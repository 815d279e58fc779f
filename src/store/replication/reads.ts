/**
 * Reads of the store. Linearizable reads wait for ReadIndex, and values that are not in memory are read from the log.
 */

import { CodedError } from '../../base/errors.ts';
import type { Clock } from '../../base/time/clock.ts';
import { EventType, splitEvents } from '../core/messages/event.ts';
import type { RangeRequest } from '../core/messages/kv.ts';
import { MvccError } from '../core/mvcc/errors.ts';
import { type Pinned, type RangeAnswer, ValuesNeeded } from '../core/mvcc/machine.ts';
import type { Version } from '../core/mvcc/version.ts';
import type { StoreLog } from '../disk/port.ts';
import type { StoreView } from './store-view.ts';
import type { LeadershipWaiters } from './waiters.ts';

export interface ReadsDeps {
  readonly view: StoreView;
  readonly storage: Pick<StoreLog, 'read'>;
  readonly clock: Clock;
  readonly leadership: LeadershipWaiters;
  /** Called with the duration of a range in milliseconds, without the wait for ReadIndex. */
  readonly onRead: (ms: number) => void;
  /** Called when ReadIndex did not succeed within the request timeout. */
  readonly onReadTimedOut: () => void;
}

/**
 * Maximum number of values of one request that are cached after reading them from disk. Larger requests scan the store
 * and would evict values that other requests use.
 */
const MOST_KEPT = 64;
/** Maximum number of tries of one operation, because its values may be compacted while they are read. */
const MOST_TRIES = 10;

export class Reads {
  readonly #deps: ReadsDeps;
  #timedOutMs = Number.NEGATIVE_INFINITY;

  constructor(deps: ReadsDeps) {
    this.#deps = deps;
  }

  /**
   * Linearizable read, which includes everything acknowledged before the call. Throws MvccError, CodedError
   * 'no-leader'.
   */
  async range(request: RangeRequest): Promise<{ readonly answer: RangeAnswer; readonly revision: number }> {
    const { view, clock, onRead } = this.#deps;
    if (!request.serializable && !view.current) await this.linearizable();
    const began = clock.monotonicMs();
    let pinned: Map<Version, Buffer> | undefined;
    for (let tries = 1; ; tries += 1) {
      try {
        const answer = view.machine.range(request, pinned);
        onRead(clock.monotonicMs() - began);
        return { answer, revision: view.machine.visible };
      } catch (error) {
        if (!(error instanceof ValuesNeeded)) throw error;
        pinned = await this.pin(error, pinned, tries);
      }
    }
  }

  /**
   * Resolves when everything acknowledged before the call is visible here. Throws CodedError 'no-leader' after the
   * request timeout.
   */
  async linearizable(): Promise<void> {
    const { view, clock, leadership } = this.#deps;
    const deadline = clock.monotonicMs() + view.requestTimeoutMs;
    for (;;) {
      try {
        await view.replica.readIndex();
        return;
      } catch (error) {
        const again = error instanceof CodedError && error.code === 'no-leader' && clock.monotonicMs() < deadline;
        if (!again && clock.monotonicMs() >= deadline) this.#timedOut();
        if (!again || view.stopped) throw error;
        await leadership.change(Math.min(view.replica.electionMs, deadline - clock.monotonicMs()));
      }
    }
  }

  /** Reads that wait concurrently share one ReadIndex, so a timeout is counted once for them. */
  #timedOut(): void {
    const { view, clock, onReadTimedOut } = this.#deps;
    const now = clock.monotonicMs();
    if (now - this.#timedOutMs < view.requestTimeoutMs) return;
    this.#timedOutMs = now;
    onReadTimedOut();
  }

  /**
   * Like `values`, for an operation that is then evaluated again with the returned values. Returns undefined if some
   * values were overwritten and compacted in the meantime. The repeated operation then finds the current values, or
   * fails because the revision that it requested has been compacted.
   */
  async pin(needed: ValuesNeeded, known: Pinned | undefined, tries: number): Promise<Map<Version, Buffer> | undefined> {
    try {
      return await this.values(needed, known);
    } catch (error) {
      if (!(error instanceof MvccError && error.code === 'compacted') || tries >= MOST_TRIES) throw error;
      return undefined;
    }
  }

  /**
   * Reads values that are not in memory from the log. Throws MvccError 'compacted' when a value was discarded in the
   * meantime.
   */
  async values(
    { versions, among }: Pick<ValuesNeeded, 'versions' | 'among'>,
    known?: Pinned,
  ): Promise<Map<Version, Buffer>> {
    const pinned = new Map(known);
    const kept = among <= MOST_KEPT;
    const wanted = new Map<number, Version[]>();
    for (const version of versions) {
      const same = wanted.get(version.revision);
      if (same === undefined) wanted.set(version.revision, [version]);
      else same.push(version);
    }
    const revisions = [...wanted.keys()];
    const rows = await this.#deps.storage.read(revisions);
    const { machine } = this.#deps.view;
    revisions.forEach((revision, i) => {
      const row = rows[i];
      if (row === undefined) throw new MvccError('compacted');
      const events = splitEvents(row);
      for (const version of wanted.get(revision) ?? []) {
        // One revision may write a key twice: a delete and a put.
        const event = events.find(
          ({ key, version: count, type }) =>
            key === version.key && (type === EventType.delete ? 0 : count) === version.version,
        );
        if (event === undefined) throw new MvccError('compacted');
        pinned.set(version, event.kv);
        if (kept) machine.refill(version, event.kv);
      }
    });
    return pinned;
  }
}
