import type { Clock, RandomSource, Timer } from '../../src/base/time/clock.ts';

/** Real time. Timers do not keep the test process alive. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer(delayMs, callback): Timer {
    const timer = setTimeout(callback, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
};

/** A clock that only advances when the test calls it. */
export class ManualClock implements Clock {
  #nowMs: number;
  #timers: { readonly atMs: number; readonly callback: () => void }[] = [];

  constructor(nowMs = Date.parse('2026-01-02T03:04:05Z')) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    const timer = { atMs: this.#nowMs + delayMs, callback };
    this.#timers.push(timer);
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((each) => each !== timer);
      },
    };
  }

  get pendingTimers(): number {
    return this.#timers.length;
  }

  /** Fires all due timers in order and lets pending callbacks run after each. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settle();
    for (;;) {
      const due = this.#timers.filter((timer) => timer.atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.#nowMs = Math.max(this.#nowMs, due.atMs);
      due.callback();
      await settle();
    }
    this.#nowMs = untilMs;
    await settle();
  }
}

/** Lets all pending callbacks run that wait for no timer or I/O. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** A small seeded generator (mulberry32). */
export function seededRandom(seed: number): RandomSource {
  let state = seed >>> 0;
  const random = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, () => Math.floor(random() * 256));
  return {
    random,
    bytes,
    uuid: () =>
      Buffer.from(bytes(16))
        .toString('hex')
        .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'),
  };
}

/** Waits until `condition` holds. After `timeoutMs`, fails with `what`. */
export async function eventually(what: string, condition: () => boolean, timeoutMs = 5_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`timed out waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
