import assert from 'node:assert/strict';
import { it } from 'node:test';
import { OpenWatches } from '../../../../src/apiserver/rest/watches/open-watches.ts';

/** A clock whose timers are run by the test. */
class Clock {
  now = 0;
  readonly timers = new Set<{ atMs: number; callback: () => void }>();
  readonly nowMs = (): number => this.now;
  readonly monotonicMs = (): number => this.now;
  readonly setTimer = (delayMs: number, callback: () => void) => {
    const timer = { atMs: this.now + delayMs, callback };
    this.timers.add(timer);
    return { cancel: () => void this.timers.delete(timer) };
  };

  advanceTo(ms: number): void {
    for (;;) {
      const [next] = [...this.timers].sort((a, b) => a.atMs - b.atMs);
      if (next === undefined || next.atMs > ms) break;
      this.timers.delete(next);
      this.now = next.atMs;
      next.callback();
    }
    this.now = ms;
  }
}

class Watch {
  dueMs: number;
  readonly acted: number[] = [];
  ended = false;
  readonly #periodMs: number;

  constructor(periodMs: number) {
    this.#periodMs = periodMs;
    this.dueMs = periodMs;
  }

  act(nowMs: number): void {
    this.acted.push(nowMs);
    this.dueMs = nowMs + this.#periodMs;
  }

  end(): void {
    this.ended = true;
  }
}

it('one timer serves all open watches when they are due', () => {
  const clock = new Clock();
  const watches = new OpenWatches({ clock, stopping: new AbortController().signal });
  const [slow, fast, gone] = [new Watch(10_000), new Watch(700), new Watch(500)];
  for (const each of [slow, fast, gone]) watches.add(each);
  clock.advanceTo(600);
  watches.remove(gone);
  assert.deepEqual(gone.acted, [500]);
  for (let ms = 700; ms <= 21_000; ms += 50) {
    clock.advanceTo(ms);
    assert.equal(clock.timers.size, 1);
  }
  assert.equal(slow.acted.length, 2);
  assert.ok(fast.acted.length > 25, `${fast.acted.length}`);
  fast.acted.reduce((last, atMs) => {
    assert.ok(atMs - last >= 700 && atMs - last <= 800, `${last} ${atMs}`);
    return atMs;
  }, 0);
  watches.remove(slow);
  watches.remove(fast);
  assert.equal(clock.timers.size, 0);
});

it('ends all watches when the server stops', () => {
  const stopping = new AbortController();
  const watches = new OpenWatches({ clock: new Clock(), stopping: stopping.signal });
  const [one, other] = [new Watch(1000), new Watch(2000)];
  watches.add(one);
  watches.add(other);
  stopping.abort();
  assert.ok(one.ended && other.ended);
});
