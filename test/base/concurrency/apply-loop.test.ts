import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApplyLoop } from '../../../src/base/concurrency/apply-loop.ts';
import { silentLog } from '../../../src/base/log.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A clock whose timers fire in order when the test calls it. */
class Timers {
  readonly waiting: { readonly delayMs: number; readonly run: () => void }[] = [];
  readonly clock = {
    nowMs: () => 0,
    monotonicMs: () => 0,
    setTimer: (delayMs: number, run: () => void) => {
      const timer = { delayMs, run };
      this.waiting.push(timer);
      return { cancel: () => void this.waiting.splice(this.waiting.indexOf(timer), 1) };
    },
  };

  async next(): Promise<number | undefined> {
    await turn();
    const timer = this.waiting.shift();
    timer?.run();
    await turn();
    return timer?.delayMs;
  }
}

test('an apply loop applies the first change immediately, combines later changes, and settles after the last one', async () => {
  const timers = new Timers();
  let applied = 0;
  const loop = startApplyLoop({ apply: async () => void applied++, failure: 'x', clock: timers.clock, log: silentLog });
  await loop.settled();
  loop.touch();
  loop.touch();
  await turn();
  assert.equal(applied, 1);
  let settled = false;
  loop.touch();
  await turn();
  loop.touch();
  void loop.settled().then(() => {
    settled = true;
  });
  await turn();
  assert.deepEqual([applied, settled], [1, false]);
  assert.equal(await timers.next(), 10);
  assert.deepEqual([applied, settled], [2, true]);
  await loop.stop();
});

test('an apply loop retries a failure with back-off, and immediately on the next change', async () => {
  const timers = new Timers();
  let works = false;
  let attempts = 0;
  const apply = async (): Promise<void> => {
    attempts++;
    if (!works) throw new Error('no');
  };
  const loop = startApplyLoop({ apply, failure: 'x', clock: timers.clock, log: silentLog });
  loop.touch();
  const delays: (number | undefined)[] = [];
  for (let index = 0; index < 6; index++) delays.push(await timers.next());
  assert.deepEqual(delays, [100, 0, 100, 100, 100, 300]);
  assert.equal(attempts, 4);
  await timers.next();
  assert.deepEqual(
    timers.waiting.map(({ delayMs }) => delayMs),
    [700],
  );
  works = true;
  loop.touch();
  await turn();
  assert.equal(attempts, 5);
  await loop.stop();
});
