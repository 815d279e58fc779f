import type { Log, LogFields } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';

/** Interval of the lines of one warning. */
export const WARNING_INTERVAL_MS = 10_000;

/**
 * Warning about slow operations. Under load, each operation is slow, and a line for each makes the disk slower. The
 * first line is written immediately. Afterwards, each interval has one line with the slowest operation and the number
 * of suppressed lines.
 */
export class LimitedWarning {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #message: string;
  #isWaiting = false;
  #suppressed = 0;
  #slowest: { readonly ms: number; readonly fields: LogFields } | undefined;

  constructor(log: Log, clock: Clock, message: string) {
    this.#log = log;
    this.#clock = clock;
    this.#message = message;
  }

  /** `ms`: duration of the operation. */
  warn(ms: number, fields: LogFields): void {
    if (!this.#isWaiting) {
      this.#log.warn(this.#message, fields);
      this.#wait();
      return;
    }
    if (this.#slowest === undefined) this.#slowest = { ms, fields };
    else {
      this.#suppressed += 1;
      if (ms > this.#slowest.ms) this.#slowest = { ms, fields };
    }
  }

  #wait(): void {
    this.#isWaiting = true;
    this.#clock.setTimer(WARNING_INTERVAL_MS, () => {
      const slowest = this.#slowest;
      this.#isWaiting = false;
      if (slowest === undefined) return;
      this.#log.warn(this.#message, { ...slowest.fields, suppressed: this.#suppressed });
      this.#slowest = undefined;
      this.#suppressed = 0;
      this.#wait();
    });
  }
}
