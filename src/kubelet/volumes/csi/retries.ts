/** Background work that is retried until it succeeds. Source: pkg/util/goroutinemap/exponentialbackoff. */

import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';

/** Upstream's initialDurationBeforeRetry and maxDurationBeforeRetry. */
const INITIAL_MS = 500;
const MAX_MS = 122_000;

interface Attempts {
  delayMs: number;
  timer: Timer | undefined;
}

export class Retries {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #attempts = new Map<string, Attempts>();
  #isStopped = false;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Runs `work` now and again after each failure, with exponential back-off. Replaces earlier work of `key`. */
  start(key: string, work: () => Promise<void>): void {
    this.cancel(key);
    if (this.#isStopped) return;
    const attempts: Attempts = { delayMs: INITIAL_MS, timer: undefined };
    this.#attempts.set(key, attempts);
    this.#run(key, attempts, work);
  }

  /** Cancels retries. A run in progress completes. */
  cancel(key: string): void {
    this.#attempts.get(key)?.timer?.cancel();
    this.#attempts.delete(key);
  }

  stop(): void {
    this.#isStopped = true;
    for (const key of [...this.#attempts.keys()]) this.cancel(key);
  }

  #run(key: string, attempts: Attempts, work: () => Promise<void>): void {
    work().then(
      () => {
        if (this.#attempts.get(key) === attempts) this.#attempts.delete(key);
      },
      (error: unknown) => {
        const { delayMs } = attempts;
        const isCurrent = this.#attempts.get(key) === attempts;
        this.#log.warn('volume operation failed', {
          operation: key,
          error: messageOf(error),
          ...(isCurrent ? { retryMs: delayMs } : {}),
        });
        if (!isCurrent) return;
        attempts.delayMs = Math.min(delayMs * 2, MAX_MS);
        attempts.timer = this.#clock.setTimer(delayMs, () => this.#run(key, attempts, work));
      },
    );
  }
}
