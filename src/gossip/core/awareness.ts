/**
 * Lifeguard's local health multiplier (LHM): a score for how slow this member itself appears to be. 0 is healthy. Each
 * sign of its own slowness (a missed nack, a refutation, a late wake-up) adds one; each answered probe subtracts one.
 * Probe intervals and timeouts grow with the score, so a slow member suspects other members later instead of wrongly.
 */
export class Awareness {
  readonly #limit: number;
  #score = 0;

  /** @param limit One more than the highest score (memberlist's `AwarenessMaxMultiplier`). */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get score(): number {
    return this.#score;
  }

  apply(delta: number): void {
    this.#score = Math.min(this.#limit - 1, Math.max(0, this.#score + delta));
  }

  scale(durationMs: number): number {
    return durationMs * (this.#score + 1);
  }
}
