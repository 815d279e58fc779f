import { messageOf } from '../../../base/errors.ts';
import type { WatchPath } from '../../../base/files/path-watch-port.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';

/** Interval of checking containers whose monitor was killed. */
const UNMONITORED_POLL_MS = 1_000;

interface Endings {
  settle(id: string): Promise<void>;
  settleUnmonitored(): Promise<void>;
}

/**
 * Records the end of containers: when their monitors write exit files, and periodically for those whose monitor was
 * killed.
 */
export class ExitWatch {
  readonly #containers: Endings;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #watcher: { close(): void };
  #looking: Timer | undefined;

  /** Watches `directory` until `close`. */
  constructor(directory: string, watch: WatchPath, containers: Endings, clock: Clock, log: Log) {
    this.#containers = containers;
    this.#clock = clock;
    this.#log = log;
    const changed = (file = ''): void => {
      if (!/^[0-9a-f]{64}$/.test(file)) return;
      containers
        .settle(file)
        .catch((error: unknown) =>
          log.warn('exit of a container not recorded', { container: file, error: messageOf(error) }),
        );
    };
    this.#watcher = watch(directory, changed, { names: true });
    this.#poll();
  }

  close(): void {
    this.#looking?.cancel();
    this.#looking = undefined;
    this.#watcher.close();
  }

  #poll(): void {
    this.#looking = this.#clock.setTimer(UNMONITORED_POLL_MS, () => {
      this.#containers
        .settleUnmonitored()
        .catch((error: unknown) =>
          this.#log.warn('containers without monitor not checked', { error: messageOf(error) }),
        )
        .finally(() => {
          if (this.#looking !== undefined) this.#poll();
        });
    });
  }
}
