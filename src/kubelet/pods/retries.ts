/** Retry times of the failed steps of one pod, in monotonic time. The delay doubles up to a maximum, per step. */
export class Retries {
  readonly #minMs: number;
  readonly #maxMs: number;
  readonly #steps = new Map<string, { readonly attempts: number; readonly atMs: number }>();

  constructor(bounds: { readonly minMs: number; readonly maxMs: number }) {
    this.#minMs = bounds.minMs;
    this.#maxMs = bounds.maxMs;
  }

  /** Returns undefined when the step is due immediately. */
  dueAtMs(step: string): number | undefined {
    return this.#steps.get(step)?.atMs;
  }

  delayMs(step: string): number {
    return Math.min(this.#maxMs, this.#minMs * 2 ** (this.#steps.get(step)?.attempts ?? 0));
  }

  /** Records a failure. */
  failed(step: string, nowMs: number): void {
    const attempts = (this.#steps.get(step)?.attempts ?? 0) + 1;
    this.#steps.set(step, { attempts, atMs: nowMs + this.delayMs(step) });
  }

  /** Defers the step until `atMs` and resets its back-off. */
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
