import type { RandomSource } from '../base/time/clock.ts';

export interface BackoffOptions {
  readonly initialMs: number;
  readonly maxMs: number;
  /** Growth per step. Default: 2. */
  readonly factor?: number;
  /** Maximum random addition, as a fraction of the delay, so that clients do not retry at the same time. Default: 0. */
  readonly jitter?: number;
}

/** Delays that grow exponentially until `reset` is called. */
export class Backoff {
  readonly #options: BackoffOptions;
  readonly #random: RandomSource;
  #nextMs: number;

  constructor(options: BackoffOptions, random: RandomSource) {
    this.#options = options;
    this.#random = random;
    this.#nextMs = options.initialMs;
  }

  /** Returns the next delay in milliseconds. */
  next(): number {
    const delayMs = this.#nextMs;
    this.#nextMs = Math.min(delayMs * (this.#options.factor ?? 2), this.#options.maxMs);
    return delayMs * (1 + this.#random.random() * (this.#options.jitter ?? 0));
  }

  reset(): void {
    this.#nextMs = this.#options.initialMs;
  }
}
