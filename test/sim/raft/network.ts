import type { Random } from './random.ts';
import type { Timeline } from './timeline.ts';

/**
 * Datagram network between members with delay, loss, duplication and reordering, and links that can be cut in one or
 * both directions.
 */
export class Network {
  loss = 0;
  duplication = 0;
  /** Upper bound of the usual delay. */
  delayMs = 5;
  /** Share of datagrams with a much longer delay. */
  straggle = 0;
  readonly #cut = new Set<string>();
  readonly #random: Random;
  readonly #timeline: Timeline;

  constructor(random: Random, timeline: Timeline) {
    this.#random = random;
    this.#timeline = timeline;
  }

  cut(from: string, to: string): void {
    this.#cut.add(`${from}>${to}`);
  }

  heal(): void {
    this.#cut.clear();
  }

  connected(from: string, to: string): boolean {
    return !this.#cut.has(`${from}>${to}`);
  }

  send(from: string, to: string, deliver: () => void): void {
    const random = this.#random;
    const copies = this.duplication > 0 && random.chance(this.duplication) ? 2 : 1;
    for (let i = 0; i < copies; i++) {
      if (this.loss > 0 && random.chance(this.loss)) continue;
      let delay = random.between(0.5, this.delayMs);
      if (this.straggle > 0 && random.chance(this.straggle)) delay += random.between(20, 400);
      // A datagram is lost if the link is cut when it is sent or when it arrives.
      if (!this.connected(from, to)) continue;
      this.#timeline.after(delay, () => {
        if (this.connected(from, to)) deliver();
      });
    }
  }
}
