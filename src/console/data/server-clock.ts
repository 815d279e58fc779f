/**
 * Clock of the API server, derived from the `Date` headers of its responses. Ages and expiries use it, because the
 * clock of a laptop or phone may be wrong by days or years.
 */

/** Differences up to this are not corrected: `Date` has whole seconds, and responses take time. */
const TOLERANCE_MS = 5_000;

export class ServerClock {
  readonly #ownMs: () => number;
  #offsetMs = 0;

  constructor(ownMs: () => number) {
    this.#ownMs = ownMs;
  }

  /** Milliseconds by which the server's clock is ahead of this computer's; 0 if they agree. */
  get offsetMs(): number {
    return this.#offsetMs;
  }

  /** Takes the `Date` header of a response that has just arrived. Headers without a valid time are ignored. */
  observe(date: string | null): void {
    const serverMs = Date.parse(date ?? '');
    if (Number.isNaN(serverMs)) return;
    const differenceMs = serverMs - this.#ownMs();
    this.#offsetMs = Math.abs(differenceMs) > TOLERANCE_MS ? differenceMs : 0;
  }

  nowMs(): number {
    return this.#ownMs() + this.#offsetMs;
  }
}
