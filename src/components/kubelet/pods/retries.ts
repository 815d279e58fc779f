/**
 * When the failed steps of one pod are due again, in monotonic time: a delay that doubles up to a bound, by the step's
 * name.
 */
export class Retries {
  readonly #minMs: number;
  readonly #maxMs: number;
  readonly #steps = new Map<string, { readonly attempts: number; readonly atMs: number }>();

  constructor(bounds: { readonly minMs: number; readonly maxMs: number }) {
    this.#minMs = bounds.minMs;
    this.#maxMs = bounds.maxMs;
  }

  /** Undefined: at once. */
  dueAtMs(step: string): number | undefined {
    return this.#steps.get(step)?.atMs;
  }

  delayMs(step: string): number {
    return Math.min(this.#maxMs, this.#minMs * 2 ** (this.#steps.get(step)?.attempts ?? 0));
  }

  /** Counts a failure. */
  failed(step: string, nowMs: number): void {
    const attempts = (this.#steps.get(step)?.attempts ?? 0) + 1;
    this.#steps.set(step, { attempts, atMs: nowMs + this.delayMs(step) });
  }

  /** The next failure counts as the first. */
  failedUntil(step: string, atMs: number): void {
    this.#steps.set(step, { attempts: 0, atMs });
  }

  succeeded(step: string): void {
    this.#steps.delete(step);
  }

  clear(): void {
    this.#steps.clear();
  }
}
