/**
 * Adapts the election timeout to measured times: long enough that a slow disk, a high latency or a busy machine is not
 * mistaken for a failed leader, but not longer. All times are milliseconds.
 */
const SHORTEST_MS = 500;
const LONGEST_MS = 5000;
/** Lower bound of the timeout as a multiple of the duration of a disk write. An election takes two writes. */
const WRITES = 10;
/** Lower bound of the timeout as a multiple of the longest round trip. */
const ROUND_TRIPS = 3;
/**
 * Lower bound of the timeout as a multiple of the longest pause of a live leader. The timeout itself is randomized up
 * to twice its length.
 */
const SILENCES = 1.5;
/** A member that has not ticked for this time was paused itself, so it ignores its measurements. */
const STOOD_STILL_MS = 250;
/** Half-life of a measurement. */
const HALF_LIFE_MS = 15_000;
/** Smaller relative differences do not change the timeout. */
const NOTICEABLE = 0.2;
/** Maximum number of heartbeat rounds for which responses are still expected. */
const MAX_ROUNDS = 64;
/** This many lost leaders within the window indicate a timeout that is too short. */
const LOSSES = 6;
const LOSSES_WITHIN_MS = 15_000;

/** Maximum that decays over time. */
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

export class ElectionTimeout {
  readonly #silence = new FadingMaximum();
  readonly #roundTrip = new FadingMaximum();
  #electionMs: number;
  #lastMessage: { readonly from: string; readonly term: number; readonly atMs: number } | undefined;
  #rounds: Array<{ readonly round: number; readonly atMs: number; readonly missing: Set<string>; needed: number }> = [];
  #losses: number[] = [];
  #tickedAtMs: number | undefined;

  constructor(electionMs: number) {
    this.#electionMs = electionMs;
  }

  /** Records a message of the leader of `term`. */
  leaderMessageReceived(from: string, term: number, nowMs: number): void {
    const before = this.#lastMessage;
    this.#lastMessage = { from, term, atMs: nowMs };
    // The term is unchanged, so the leader was alive during the whole pause.
    if (before?.from === from && before.term === term && !this.#wasStalled(nowMs))
      this.#silence.add(nowMs - before.atMs, nowMs);
  }

  /** Records a lost leader. Repeated losses indicate a short timeout rather than failed leaders. */
  lost(nowMs: number): void {
    this.#losses = [...this.#losses.filter((at) => nowMs - at < LOSSES_WITHIN_MS), nowMs];
    if (this.#losses.length >= LOSSES) this.#silence.add(2 * this.#electionMs, nowMs);
  }

  /** Records a heartbeat round that this leader sent to the other voters. */
  roundSent(round: number, voters: readonly string[], nowMs: number): void {
    if (this.#rounds.at(-1)?.round === round) return;
    if (this.#rounds.length >= MAX_ROUNDS) this.#rounds.shift();
    // Together with this member they form a majority.
    const needed = Math.ceil(voters.length / 2);
    this.#rounds.push({ round, atMs: nowMs, missing: new Set(voters), needed });
  }

  /**
   * Records a response to a heartbeat round. The round ends when a majority has responded, so that a single slow or
   * restarted member does not lengthen the measured time.
   */
  answered(round: number, from: string, nowMs: number): void {
    const requested = this.#rounds.find((each) => each.round === round);
    if (requested === undefined || !requested.missing.delete(from)) return;
    requested.needed -= 1;
    if (requested.needed === 0 && !this.#wasStalled(nowMs)) this.#roundTrip.add(nowMs - requested.atMs, nowMs);
  }

  ticked(nowMs: number): void {
    // Rounds that were in flight during a pause of this member are not measured.
    if (this.#wasStalled(nowMs)) {
      this.#rounds = [];
      this.#lastMessage = undefined;
    }
    this.#tickedAtMs = nowMs;
  }

  #wasStalled(nowMs: number): boolean {
    return nowMs - (this.#tickedAtMs ?? nowMs) > STOOD_STILL_MS;
  }

  /** New election timeout, given the duration of writes. Undefined when it does not change. */
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
