/**
 * Work queue of names: one worker per name at a time; a name that changes meanwhile is queued again; failures are
 * retried with back-off.
 */
import { isApiError } from '../../api/meta/status.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';

export interface WorkOptions {
  readonly clock: Clock;
  readonly stopping: AbortSignal;
  readonly workers: number;
  readonly firstRetryMs: number;
  readonly lastRetryMs: number;
  /** Reconciles a name. A rejection schedules a retry. */
  sync(name: string): Promise<void>;
  failed(name: string, error: unknown): void;
}

/** Ignores NotFound: a deleted object needs no reconciliation. */
export async function ignoreNotFound(looked: Promise<void>): Promise<void> {
  await looked.catch((error: unknown) => {
    if (!isApiError(error, 'NotFound')) throw error;
  });
}

export class Work {
  readonly #options: WorkOptions;
  readonly #waiting = new Set<string>();
  readonly #running = new Set<string>();
  readonly #again = new Set<string>();
  readonly #retries = new Map<string, { delayMs: number; timer: Timer }>();

  constructor(options: WorkOptions) {
    this.#options = options;
  }

  add(name: string): void {
    if (this.#options.stopping.aborted) return;
    if (this.#running.has(name)) this.#again.add(name);
    else this.#waiting.add(name);
    this.#next();
  }

  #next(): void {
    for (const name of this.#waiting) {
      if (this.#running.size >= this.#options.workers) return;
      this.#waiting.delete(name);
      this.#running.add(name);
      void this.#run(name);
    }
  }

  async #run(name: string): Promise<void> {
    const { sync, failed, stopping } = this.#options;
    try {
      await sync(name);
      this.#retries.get(name)?.timer.cancel();
      this.#retries.delete(name);
    } catch (error) {
      if (!stopping.aborted) {
        failed(name, error);
        this.#later(name);
      }
    }
    this.#running.delete(name);
    if (this.#again.delete(name)) this.#waiting.add(name);
    if (!stopping.aborted) this.#next();
  }

  #later(name: string): void {
    const { clock, firstRetryMs, lastRetryMs } = this.#options;
    const known = this.#retries.get(name);
    known?.timer.cancel();
    const delayMs = known === undefined ? firstRetryMs : Math.min(known.delayMs * 2, lastRetryMs);
    this.#retries.set(name, { delayMs, timer: clock.setTimer(delayMs, () => this.add(name)) });
  }
}
