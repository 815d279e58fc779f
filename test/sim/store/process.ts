import type { Clock, Timer } from '../../../src/base/time/clock.ts';
import type { Timeline } from '../raft/timeline.ts';

const EPOCH_MS = 1_700_000_000_000;

/** One run of a process. Its callbacks run only while it is alive, and wait while it is stopped. */
export class Life {
  alive = true;
  paused = false;
  readonly #backlog: Array<() => void> = [];

  run(what: () => void): void {
    if (!this.alive) return;
    if (this.paused) this.#backlog.push(what);
    else what();
  }

  end(): void {
    this.alive = false;
    this.#backlog.length = 0;
  }

  /** Simulates SIGCONT: the accumulated callbacks run one after another. */
  resume(timeline: Timeline): void {
    this.paused = false;
    for (const what of this.#backlog.splice(0)) timeline.after(0, () => this.run(what));
  }
}

/** Clock of a host. It may run slightly fast or slow, and its wall clock may be set wrong. */
export class SimulatedClock implements Clock {
  readonly #timeline: Timeline;
  readonly #life: Life;
  readonly #rate: number;
  readonly #origin: number;
  /** Deviation of the wall clock. */
  skewMs = 0;

  constructor(timeline: Timeline, life: Life, rate: number, origin: number) {
    this.#timeline = timeline;
    this.#life = life;
    this.#rate = rate;
    this.#origin = origin;
  }

  nowMs(): number {
    return EPOCH_MS + this.skewMs + this.monotonicMs();
  }

  monotonicMs(): number {
    return this.#origin + this.#timeline.nowMs * this.#rate;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    let over = false;
    const due = this.monotonicMs() + Math.max(1, delayMs);
    this.#timeline.after(Math.max(1, delayMs) / this.#rate, () => {
      if (over) return;
      this.#life.run(() => {
        if (over) return;
        over = true;
        if (due > this.monotonicMs() + 0.001) throw new Error('a timer fires early');
        callback();
      });
    });
    return {
      cancel: () => {
        over = true;
      },
    };
  }
}
