import type { Clock } from '../../base/clock.ts';

/** A place that is held longer is given to the next: a runtime that hangs must not keep other pods from starting. */
const HOLD_MS = 2_000;

/**
 * Bounds how many sandboxes and containers are being made at a time. Each starts several programs, for whose start the
 * host's main thread waits, and that takes the longer the more of them share the processors.
 */
export class StartLimit {
  readonly #clock: Clock;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number, clock: Clock) {
    this.#free = limit;
    this.#clock = clock;
  }

  /** Resolves, in the order of the calls, with what gives the place back; calling that again has no effect. */
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
