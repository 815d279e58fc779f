import type { Clock } from '../../../base/time/clock.ts';

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
  /** Waiting starts by namespace. The first namespace gets the next slot and then moves to the end. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(limit: number, clock: Clock) {
    this.#free = limit;
    this.#clock = clock;
  }

  /**
   * Resolves with a function that releases the slot. Calling it twice has no effect. Namespaces get slots in turn, so
   * that many starts that hang in one namespace do not delay the pods of the others. Within a namespace, the order of
   * the calls counts.
   */
  async take(namespace: string): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1;
    else
      await new Promise<void>((resolve) => {
        const waiting = this.#waiting.get(namespace);
        if (waiting === undefined) this.#waiting.set(namespace, [resolve]);
        else waiting.push(resolve);
      });
    let held = true;
    const release = (): void => {
      if (!held) return;
      held = false;
      timer.cancel();
      const next = this.#next();
      if (next === undefined) this.#free += 1;
      else next();
    };
    const timer = this.#clock.setTimer(HOLD_MS, release);
    return release;
  }

  #next(): (() => void) | undefined {
    for (const [namespace, waiting] of this.#waiting) {
      const next = waiting.shift();
      this.#waiting.delete(namespace);
      if (waiting.length > 0) this.#waiting.set(namespace, waiting);
      return next;
    }
    return undefined;
  }
}
