/**
 * How long to wait for a leader, from what is measured: long enough that a slow disk, a long way or a busy machine is not taken for a dead leader, and
 * no longer. All times are milliseconds.
 */
const SHORTEST_MS = 500;
const LONGEST_MS = 5000;
/** An election takes two writes and two round trips; several of them have to fit. */
const ROUNDS = 10;
/** Longest silences of a leader that lived all the same. */
const SILENCES = 3;
/** What was measured once is worth half after this time. */
const HALF_LIFE_MS = 30_000;
/** Smaller differences are not worth a change. */
const NOTICEABLE = 0.2;

/** The largest of what was measured, fading. */
class FadingMaximum {
  #value = 0;
  #at = 0;

  add(value: number, nowMs: number): void {
    this.#value = Math.max(value, this.get(nowMs));
    this.#at = nowMs;
  }

  get(nowMs: number): number {
    return this.#value * 0.5 ** ((nowMs - this.#at) / HALF_LIFE_MS);
  }
}

export class Pace {
  readonly #silence = new FadingMaximum();
  readonly #roundTrip = new FadingMaximum();
  #electionMs: number;
  #heard: { readonly from: string; readonly atMs: number } | undefined;
  #sent: { readonly round: number; readonly atMs: number } | undefined;

  constructor(electionMs: number) {
    this.#electionMs = electionMs;
  }

  /** The leader of the day has been heard. */
  heard(from: string, nowMs: number): void {
    const before = this.#heard;
    this.#heard = { from, atMs: nowMs };
    if (before?.from !== from) return;
    const silence = nowMs - before.atMs;
    // Longer ones were taken for its end, and rightly so.
    if (silence < this.#electionMs) this.#silence.add(silence, nowMs);
  }

  /** This member, leading, asks everybody for a sign of life. */
  asked(round: number, nowMs: number): void {
    if (this.#sent?.round !== round) this.#sent = { round, atMs: nowMs };
  }

  answered(round: number, nowMs: number): void {
    if (this.#sent?.round === round) this.#roundTrip.add(nowMs - this.#sent.atMs, nowMs);
  }

  /** The election timeout to use from now on, given how long writes take; undefined: as it is. */
  adapt(writeMs: number, nowMs: number): number | undefined {
    const wanted = Math.max(
      SHORTEST_MS,
      ROUNDS * (writeMs + this.#roundTrip.get(nowMs)),
      SILENCES * this.#silence.get(nowMs),
    );
    const next = Math.min(LONGEST_MS, wanted);
    if (Math.abs(next - this.#electionMs) < this.#electionMs * NOTICEABLE) return undefined;
    this.#electionMs = next;
    return next;
  }
}
