/**
 * Compacts the store's history. Each round compacts to the revision of the previous round: watches and paged
 * lists of the last interval stay whole. Source: k8s.io/apiserver etcd3 compact.go.
 */
import type { Clock, Timer } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Store } from '../../../core/mvcc/port.ts';

/** The part of the history that can be read. */
export interface History {
  readonly revision: number;
  /** The revision that history begins with, as far as this server compacted it. */
  compactedTo: number;
}

/**
 * A compaction that removes less is not worth what the store writes for it. Far below what a client makes that waits
 * for the history to end, such as upstream's test of paged lists with 400 objects.
 */
const LEAST_REVISIONS = 256;

export class Compactor {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #intervalMs: number;
  readonly #history: History;
  #timer: Timer | undefined;
  #previous = 0;

  constructor(store: Store, clock: Clock, log: Log, intervalSeconds: number, history: History) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#intervalMs = intervalSeconds * 1000;
    this.#history = history;
  }

  /** With an interval of 0 it leaves history alone. */
  start(): void {
    if (this.#intervalMs <= 0) return;
    this.#previous = this.#history.revision;
    this.#schedule();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #schedule(): void {
    this.#timer = this.#clock.setTimer(this.#intervalMs, () => {
      this.#schedule();
      const target = this.#previous;
      this.#previous = this.#history.revision;
      if (target <= 0 || target - this.#history.compactedTo < LEAST_REVISIONS) return;
      this.#store.compact(target).then(
        () => {
          this.#history.compactedTo = Math.max(this.#history.compactedTo, target);
          this.#log.v(4, 'compacted', { revision: target });
        },
        // Another API server may have compacted further; the next round tries again with a newer revision.
        (error: unknown) =>
          this.#log.v(2, 'compaction failed; retrying at the next interval', {
            revision: target,
            error: messageOf(error),
          }),
      );
    });
  }
}
