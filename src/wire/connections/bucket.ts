/** A token bucket with a burst and a refill rate. Times are monotonic milliseconds. */
export class Bucket {
  readonly #burst: number;
  readonly #perSecond: number;
  /** Lower bound of the level; further debt is ignored. */
  readonly #floor: number;
  #level: number;
  #filledMs: number;

  constructor(burst: number, perSecond: number, nowMs: number, maxDebt = 0) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#floor = -maxDebt;
    this.#level = burst;
    this.#filledMs = nowMs;
  }

  level(nowMs: number): number {
    const earned = (Math.max(0, nowMs - this.#filledMs) * this.#perSecond) / 1000;
    this.#filledMs = nowMs;
    this.#level = Math.min(this.#burst, this.#level + earned);
    return this.#level;
  }

  full(nowMs: number): boolean {
    return this.level(nowMs) >= this.#burst;
  }

  /** Takes one token; returns false if there is none. */
  take(nowMs: number): boolean {
    if (this.level(nowMs) < 1) return false;
    this.#level -= 1;
    return true;
  }

  /** Takes `count` tokens; the level may become negative. */
  charge(count: number): void {
    this.#level = Math.max(this.#floor, this.#level - count);
  }

  refund(count: number): void {
    this.#level = Math.min(this.#burst, this.#level + count);
  }

  /** Milliseconds until a token is available; 0 if there is one. */
  delayMs(nowMs: number): number {
    const missing = 1 - this.level(nowMs);
    return missing <= 0 ? 0 : Math.ceil((missing * 1000) / this.#perSecond);
  }
}
