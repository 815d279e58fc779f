import type { Clock } from '../base/time/clock.ts';

/** Waits of pods in PreBind for changes that informers deliver. Each change checks all waits. */
export class Waits {
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();
  #stopped = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Checks all waits. Called when a change may end a wait. */
  readonly changed = (): void => {
    for (const check of this.#waiting) check();
  };

  /** Ends all waits with a rejection. */
  stop(): void {
    this.#stopped = true;
    this.changed();
  }

  /** Resolves when `isDone` returns true. Rejects if `isDone` throws, or with the message `late` after `timeoutMs`. */
  until(isDone: () => boolean, timeoutMs: number, late: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (error?: unknown): void => {
        this.#waiting.delete(check);
        timer.cancel();
        if (error === undefined) resolve();
        else reject(error);
      };
      const check = (): void => {
        try {
          if (this.#stopped) throw new Error('scheduler is stopping');
          if (isDone()) end();
        } catch (error) {
          end(error);
        }
      };
      const timer = this.#clock.setTimer(timeoutMs, () => end(new Error(late)));
      this.#waiting.add(check);
      check();
    });
  }
}
