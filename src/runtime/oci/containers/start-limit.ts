import type { Clock } from '../../../base/clock.ts';

/**
 * Time after which a slot is given to the next waiter even if it is still held, so that a runtime that hangs does not
 * block other pods.
 */
const HOLD_MS = 2_000;

/**
 * Limits how many sandboxes and containers are created at the same time. Each creation starts several programs.
 * Starting a program blocks the main thread of the host process, and it takes longer the more programs share the
 * processors.
 */
export class StartLimit {
  readonly #clock: Clock;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number, clock: Clock) {
    this.#free = limit;
    this.#clock = clock;
  }

  /** Resolves in call order with a function that releases the slot. Calling it twice has no effect. */
  async take(): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    let held = true;
    const release = (): void => {
      if (!held) return;
      held = false;
      timer.cancel();
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    };
    const timer = this.#clock.setTimer(HOLD_MS, release);
    return release;
  }
}
