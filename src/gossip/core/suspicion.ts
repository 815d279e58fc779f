/**
 * Timeout between the suspicion of a member and the declaration of its death (Lifeguard, "suspicion timeouts"). It
 * starts long and becomes shorter with each independent confirmation. So a single wrong accusation leaves much time for
 * a refutation, while a real failure is confirmed quickly.
 */
export interface SuspicionTimes {
  /** Number of confirmations after which the timeout reaches its minimum. With 0, it starts at the minimum. */
  readonly expected: number;
  readonly minMs: number;
  readonly maxMs: number;
}

export class Suspicion {
  readonly #times: SuspicionTimes;
  readonly #accusers: Set<string>;
  #sinceMs: number;

  constructor(times: SuspicionTimes, firstAccuser: string, nowMs: number) {
    this.#times = times;
    this.#accusers = new Set([firstAccuser]);
    this.#sinceMs = nowMs;
  }

  /** Number of confirmations so far. The first accusation does not count. */
  get confirmations(): number {
    return this.#accusers.size - 1;
  }

  accusedBy(name: string): boolean {
    return this.#accusers.has(name);
  }

  /**
   * Records an accuser. Returns true if the accuser is new; then the accusation must be forwarded. At most `expected`
   * accusers are recorded.
   */
  confirm(accuser: string): boolean {
    if (this.confirmations >= this.#times.expected || this.#accusers.has(accuser)) return false;
    this.#accusers.add(accuser);
    return true;
  }

  /** Time at which the suspected member is declared dead. */
  deadlineMs(): number {
    const { expected, minMs, maxMs } = this.#times;
    if (expected < 1) return this.#sinceMs + minMs;
    const share = Math.log(this.confirmations + 1) / Math.log(expected + 1);
    return this.#sinceMs + Math.max(minMs, Math.floor(maxMs - share * (maxMs - minMs)));
  }

  /** Extends the timeout by the time for which this member was paused. */
  postpone(byMs: number): void {
    this.#sinceMs += byMs;
  }
}

/** Suspicion timeouts for a ring of `members` (memberlist's `suspicionTimeout` and `suspicionMaxTimeout`). */
export function suspicionTimes(
  members: number,
  settings: { readonly suspicionMult: number; readonly suspicionMaxMult: number; readonly probeIntervalMs: number },
): SuspicionTimes {
  const scale = Math.max(1, Math.log10(Math.max(1, members)));
  const minMs = settings.suspicionMult * scale * settings.probeIntervalMs;
  // The accuser and the suspected member cannot confirm the suspicion. If too few other members remain, no confirmation
  // is expected.
  const wanted = settings.suspicionMult - 2;
  const expected = members - 2 < wanted ? 0 : wanted;
  return { expected, minMs, maxMs: minMs * settings.suspicionMaxMult };
}
