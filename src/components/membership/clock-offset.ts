/**
 * How far this host's clock is from the others', from nothing but the time that each member's metadata was published
 * at. Broadcasts take a while, and only ever makes a clock look behind: the sample that looks furthest ahead was the
 * quickest and is the best one.
 */
export class ClockOffsets {
  readonly #samples = new Map<string, number[]>();

  /** Metadata of `member`, published at `toldAtMs` by its clock, was received at `nowMs` by ours. */
  heard(member: string, toldAtMs: number, nowMs: number): void {
    const samples = this.#samples.get(member) ?? [];
    samples.push(toldAtMs - nowMs);
    if (samples.length > KEPT) samples.shift();
    this.#samples.set(member, samples);
  }

  forget(member: string): void {
    this.#samples.delete(member);
  }

  /**
   * Our clock minus the median clock of the ring, ourselves included; undefined while there is no other member to
   * compare with.
   */
  own(): number | undefined {
    const theirs = [...this.#samples.values()].filter((samples) => samples.length >= TRUSTED);
    if (theirs.length === 0) return undefined;
    const offsets = [0, ...theirs.map((samples) => Math.max(...samples))].sort((left, right) => left - right);
    const middle = Math.floor(offsets.length / 2);
    const upper = offsets[middle] ?? 0;
    const median = offsets.length % 2 === 1 ? upper : ((offsets[middle - 1] ?? 0) + upper) / 2;
    return -Math.round(median);
  }
}

const KEPT = 8;
/** One sample may be old news. */
const TRUSTED = 3;
