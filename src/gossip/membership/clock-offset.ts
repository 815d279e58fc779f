/**
 * Estimates the offset of this host's clock from the clocks of other members. It compares the publication time of their
 * metadata with the time of receipt. A delay only makes the sender's clock appear slower, so the sample in which it is
 * furthest ahead had the least delay and is used.
 */
export class ClockOffsets {
  readonly #samples = new Map<string, number[]>();

  /**
   * Records that metadata of `member`, published at `sentAtMs` on its clock, was received at `nowMs` on this host's
   * clock.
   */
  observe(member: string, sentAtMs: number, nowMs: number): void {
    const samples = this.#samples.get(member) ?? [];
    samples.push(sentAtMs - nowMs);
    if (samples.length > KEPT) samples.shift();
    this.#samples.set(member, samples);
  }

  forget(member: string): void {
    this.#samples.delete(member);
  }

  /**
   * Milliseconds by which this host's clock is ahead of the median clock of the ring, including this host. Undefined if
   * there are not enough samples of another member.
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
/** Minimum number of samples, because a single one may be delayed. */
const TRUSTED = 3;
