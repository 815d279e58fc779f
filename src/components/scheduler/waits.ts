import type { Clock } from '../../base/clock.ts';

/** Pods that wait in PreBind for what informers are to show; each is looked at again with every change. */
export class Waits {
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();
  #stopped = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something has changed that a pod may wait for. */
  readonly changed = (): void => {
    for (const check of this.#waiting) check();
  };

  /** Ends all waits with an error. */
  stop(): void {
    this.#stopped = true;
    this.changed();
  }

  /** Resolves when `isDone`; rejects with what it throws, and with `late` after `timeoutMs`. */
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
