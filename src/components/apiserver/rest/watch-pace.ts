/**
 * Paces the writes of a watch: immediately after an idle period, else every few milliseconds with all events since. A
 * write costs both ends a system call, a TLS record and a turn of the event loop, whether it carries one event or
 * twenty, and a client that watches a whole kind would otherwise wake for each event.
 */
import type { Clock } from '../../../base/clock.ts';

/** The longest that an event waits for others; the first one never does. */
const PAUSE_MS = 5;

export interface PacedWatch {
  /** Sends what was held back since the last time; false when there was nothing. */
  sendHeld(): boolean;
}

export class WatchPace {
  readonly #clock: Clock;
  /** Written to since the last pause began. */
  readonly #recent = new Set<PacedWatch>();
  #resting = false;
  #lines: readonly Buffer[] = [];
  #joined: Buffer = Buffer.alloc(0);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * True when the watch may be written to now. Else it is to hold back what there is: it is asked for it when the pause
   * is over.
   */
  mayWrite(watch: PacedWatch): boolean {
    if (this.#recent.has(watch)) return false;
    this.#recent.add(watch);
    this.#rest();
    return true;
  }

  forget(watch: PacedWatch): void {
    this.#recent.delete(watch);
  }

  /** Lines as one piece: the same piece for all who hold the same lines. */
  join(lines: readonly Buffer[]): Buffer {
    const [first] = lines;
    if (lines.length === 1 && first !== undefined) return first;
    if (!sameLines(lines, this.#lines)) {
      this.#lines = lines;
      this.#joined = Buffer.concat(lines);
    }
    return this.#joined;
  }

  #rest(): void {
    if (this.#resting) return;
    this.#resting = true;
    this.#clock.setTimer(PAUSE_MS, () => {
      this.#resting = false;
      for (const watch of this.#recent) if (!watch.sendHeld()) this.#recent.delete(watch);
      this.#lines = [];
      this.#joined = Buffer.alloc(0);
      if (this.#recent.size > 0) this.#rest();
    });
  }
}

function sameLines(some: readonly Buffer[], others: readonly Buffer[]): boolean {
  return some.length === others.length && some.every((line, at) => line === others[at]);
}
