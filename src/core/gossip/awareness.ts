/**
 * Lifeguard's local health multiplier (LHM): how much this member doubts itself. 0 is healthy; each sign of its own
 * slowness (missed nacks, having to refute, waking late) adds one, each answered probe takes one away. Probe intervals
 * and timeouts stretch with it, so a slow member accuses others later instead of wrongly.
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
