/**
 * Compacts the store's history. Each round compacts to the revision of the previous round, so that watches and paged
 * lists can use the history of the last interval. Source: k8s.io/apiserver etcd3 compact.go.
 */
import { storeRevision } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { Store } from '../../store/port.ts';

/** Readable part of the history. */
export interface History {
  readonly revision: number;
  /** First revision that is readable after the last compaction by this server. */
  compactedTo: number;
}

/**
 * A compaction that removes fewer revisions is skipped, because it costs more writes than it saves. The number must be
 * well below the changes of a client that waits for a compaction: upstream's test of paged lists creates 400 objects.
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

  /** Starts the compactions. Does nothing if the interval is 0. */
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
      this.#store.compact(storeRevision(target)).then(
        () => {
          this.#history.compactedTo = Math.max(this.#history.compactedTo, target);
          this.#log.v(4, 'compacted', { revision: target });
        },
        // Another API server may have compacted further. The next round uses a newer revision.
        (error: unknown) =>
          this.#log.v(2, 'compaction failed; retrying at the next interval', {
            revision: target,
            error: messageOf(error),
          }),
      );
    });
  }
}
