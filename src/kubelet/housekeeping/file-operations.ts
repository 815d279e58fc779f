/**
 * Detects file operations of the host process that do not complete. A hanging disk or file system blocks the threads
 * for file operations, so no pod starts and no log is read.
 */

import { ignore } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { HostFacts } from '../port.ts';

const PROBE_MS = 2_000;
const BLOCKED_MS = 10_000;

export interface FileOperationsOptions {
  readonly host: Pick<HostFacts, 'touchFile'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly onChanged: () => void;
}

export class FileOperations {
  readonly #options: FileOperationsOptions;
  #timer: Timer | undefined;
  #sinceMs: number | undefined;
  #isBlocked = false;

  constructor(options: FileOperationsOptions) {
    this.#options = options;
  }

  start(): void {
    this.#probe();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** Message for the node's Ready condition. Undefined while file operations complete. */
  problem(): string | undefined {
    if (!this.#isBlocked) return undefined;
    return 'file operations of the host process do not finish; find the hung disk or file system with dmesg and findmnt';
  }

  /**
   * Wraps `read`: a call that takes too long returns the last result instead. Until there is a result, calls wait
   * without a limit.
   */
  latest<T>(read: () => Promise<T>): () => Promise<T> {
    let last: { readonly value: T } | undefined;
    let reading: Promise<T> | undefined;
    return async () => {
      reading ??= read()
        .then((value) => {
          last = { value };
          return value;
        })
        .finally(() => {
          reading = undefined;
        });
      if (last === undefined) return reading;
      const { value } = last;
      const timeout = Promise.withResolvers<T>();
      const timer = this.#options.clock.setTimer(BLOCKED_MS, () => timeout.resolve(value));
      reading.catch(ignore('a late failure has no caller left'));
      try {
        return await Promise.race([reading, timeout.promise]);
      } finally {
        timer.cancel();
      }
    };
  }

  #probe(): void {
    const { host, clock } = this.#options;
    this.#timer = clock.setTimer(PROBE_MS, () => this.#probe());
    if (this.#sinceMs !== undefined) {
      this.#become(clock.monotonicMs() - this.#sinceMs >= BLOCKED_MS);
      return;
    }
    this.#sinceMs = clock.monotonicMs();
    const done = (): void => {
      this.#sinceMs = undefined;
      this.#become(false);
    };
    host.touchFile().then(done, done);
  }

  #become(isBlocked: boolean): void {
    if (isBlocked === this.#isBlocked) return;
    const { log, onChanged } = this.#options;
    this.#isBlocked = isBlocked;
    if (isBlocked) log.error('file operations blocked', { problem: this.problem() ?? '' });
    else log.info('file operations unblocked');
    onChanged();
  }
}
