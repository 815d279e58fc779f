/**
 * The wait between suspecting a member and declaring it dead (Lifeguard, "suspicion timeouts"): starts long and shrinks
 * as independent members confirm, so that one confused accuser has to wait for the accused while a real failure is
 * settled quickly.
 */
export interface SuspicionTimes {
  /** Confirmations after which the wait is at its shortest. With 0 it is at its shortest from the start. */
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

  /** Confirmations so far, not counting the first accusation. */
  get confirmations(): number {
    return this.#accusers.size - 1;
  }

  accusedBy(name: string): boolean {
    return this.#accusers.has(name);
  }

  /**
   * Counts a further accuser; true when it was news, and so worth passing on. At most `expected` are ever remembered.
   */
  confirm(accuser: string): boolean {
    if (this.confirmations >= this.#times.expected || this.#accusers.has(accuser)) return false;
    this.#accusers.add(accuser);
    return true;
  }

  /** When the accused is to be declared dead. */
  deadlineMs(): number {
    const { expected, minMs, maxMs } = this.#times;
    if (expected < 1) return this.#sinceMs + minMs;
    const share = Math.log(this.confirmations + 1) / Math.log(expected + 1);
    return this.#sinceMs + Math.max(minMs, Math.floor(maxMs - share * (maxMs - minMs)));
  }

  /** Time that this member slept through does not count against the accused. */
  postpone(byMs: number): void {
    this.#sinceMs += byMs;
  }
}

/** The waits for a ring of `members` (memberlist's `suspicionTimeout` and `suspicionMaxTimeout`). */
export function suspicionTimes(
  members: number,
  settings: { readonly suspicionMult: number; readonly suspicionMaxMult: number; readonly probeIntervalMs: number },
): SuspicionTimes {
  const scale = Math.max(1, Math.log10(Math.max(1, members)));
  const minMs = settings.suspicionMult * scale * settings.probeIntervalMs;
  // The accuser and the accused cannot confirm; where too few others remain, waiting for them would be in vain.
  const wanted = settings.suspicionMult - 2;
  const expected = members - 2 < wanted ? 0 : wanted;
  return { expected, minMs, maxMs: minMs * settings.suspicionMaxMult };
}
