/**
 * How long to wait for a leader, from what is measured: long enough that a slow disk, a long way or a busy machine is not taken for a dead leader, and
 * no longer. All times are milliseconds.
 */
const SHORTEST_MS = 500;
const LONGEST_MS = 5000;
/** An election takes two writes; several of them have to fit. */
const WRITES = 10;
/** Longest round trips. */
const ROUND_TRIPS = 3;
/** Longest silences of a leader that lived all the same. The timeout itself is spread up to twice its length. */
const SILENCES = 1.5;
/** Who has not ticked for this long stood still itself, and says nothing about the others. */
const STOOD_STILL_MS = 250;
/** What was measured once is worth half after this time. */
const HALF_LIFE_MS = 15_000;
/** Smaller differences are not worth a change. */
const NOTICEABLE = 0.2;
/** Questions whose answers may still be on their way. */
const MOST_ASKED = 64;
/** As many leaders lost in this time are no accident. */
const LOSSES = 6;
const LOSSES_WITHIN_MS = 15_000;

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
  #heard: { readonly from: string; readonly term: number; readonly atMs: number } | undefined;
  #asked: Array<{ readonly round: number; readonly atMs: number; readonly missing: Set<string>; needed: number }> = [];
  #losses: number[] = [];
  #tickedAtMs: number | undefined;

  constructor(electionMs: number) {
    this.#electionMs = electionMs;
  }

  /** The leader of a term has been heard. */
  heard(from: string, term: number, nowMs: number): void {
    const before = this.#heard;
    this.#heard = { from, term, atMs: nowMs };
    // Of the same term it has led all the time, whatever was thought of it.
    if (before?.from === from && before.term === term && !this.#stoodStill(nowMs))
      this.#silence.add(nowMs - before.atMs, nowMs);
  }

  /** There is no leader any more. When that happens again and again, it is not leaders that die. */
  lost(nowMs: number): void {
    this.#losses = [...this.#losses.filter((at) => nowMs - at < LOSSES_WITHIN_MS), nowMs];
    if (this.#losses.length >= LOSSES) this.#silence.add(2 * this.#electionMs, nowMs);
  }

  /** This member, leading, asks the other voters for a sign of life. */
  asked(round: number, voters: readonly string[], nowMs: number): void {
    if (this.#asked.at(-1)?.round === round) return;
    if (this.#asked.length >= MOST_ASKED) this.#asked.shift();
    // With this member itself they are a majority.
    const needed = Math.ceil(voters.length / 2);
    this.#asked.push({ round, atMs: nowMs, missing: new Set(voters), needed });
  }

  /** A round is as long as a majority takes: one member that is far behind, or has just come back, keeps nobody waiting. */
  answered(round: number, from: string, nowMs: number): void {
    const asked = this.#asked.find((each) => each.round === round);
    if (asked === undefined || !asked.missing.delete(from)) return;
    asked.needed -= 1;
    if (asked.needed === 0 && !this.#stoodStill(nowMs)) this.#roundTrip.add(nowMs - asked.atMs, nowMs);
  }

  ticked(nowMs: number): void {
    // What was under way when it stood still says nothing later either.
    if (this.#stoodStill(nowMs)) {
      this.#asked = [];
      this.#heard = undefined;
    }
    this.#tickedAtMs = nowMs;
  }

  #stoodStill(nowMs: number): boolean {
    return nowMs - (this.#tickedAtMs ?? nowMs) > STOOD_STILL_MS;
  }

  /** The election timeout to use from now on, given how long writes take; undefined: as it is. */
  adapt(writeMs: number, nowMs: number): number | undefined {
    const wanted = Math.max(
      SHORTEST_MS,
      WRITES * writeMs,
      ROUND_TRIPS * this.#roundTrip.get(nowMs),
      SILENCES * this.#silence.get(nowMs),
    );
    const next = Math.min(LONGEST_MS, wanted);
    if (Math.abs(next - this.#electionMs) < this.#electionMs * NOTICEABLE) return undefined;
    this.#electionMs = next;
    return next;
  }
}
