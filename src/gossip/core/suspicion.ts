/**
 * Timeout between suspecting a member and declaring it dead (Lifeguard, "suspicion timeouts"). It starts long and
 * shrinks as independent members confirm. A single wrong accuser therefore waits long for the refutation, while a real
 * failure is confirmed quickly.
 */
export interface SuspicionTimes {
  /** Confirmations after which the timeout reaches its minimum. With 0 it starts at the minimum. */
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

  /** Confirmations so far, without the first accusation. */
  get confirmations(): number {
    return this.#accusers.size - 1;
  }

  accusedBy(name: string): boolean {
    return this.#accusers.has(name);
  }

  /**
   * Records a further accuser. Returns true if it is new and the accusation should be passed on. At most `expected`
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

  /** Extends the timeout by time in which this member was paused. */
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
  // The accuser and the suspected member cannot confirm. If too few other members remain, no confirmation is expected.
  const wanted = settings.suspicionMult - 2;
  const expected = members - 2 < wanted ? 0 : wanted;
  return { expected, minMs, maxMs: minMs * settings.suspicionMaxMult };
}
