import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../src/api/meta/status.ts';
import { createLog, silentLog } from '../../src/base/log.ts';
import { ConnectionError, createWorkQueue, type Reconcile } from '../../src/client/index.ts';
import { ManualClock, seededRandom, settle } from './clocks.ts';

describe('work queue', () => {
  const make = (reconcile: Reconcile, options: { readonly workers?: number; readonly lines?: string[] } = {}) => {
    const clock = new ManualClock();
    const lines = options.lines;
    const log =
      lines === undefined
        ? silentLog
        : createLog({ component: 't', level: 2, nowMs: () => 0, sink: { write: (line) => lines.push(line) } });
    const queue = createWorkQueue({
      name: 'test',
      reconcile,
      workers: options.workers ?? 1,
      clock,
      random: seededRandom(1),
      log,
    });
    return { queue, clock };
  };

  it('runs a key once for several adds, in order of arrival, and never synchronously in add', async () => {
    const ran: string[] = [];
    const { queue } = make(async (key) => void ran.push(key));
    queue.add('a');
    queue.add('b');
    queue.add('a');
    assert.deepEqual(ran, []);
    await settle();
    assert.deepEqual(ran, ['a', 'b']);
  });

  it('continues in a later turn of the event loop after 5 ms of reconciles without requests', async () => {
    let nowMs = 0;
    const timers: (() => void)[] = [];
    const clock = {
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
      setTimer: (_delayMs: number, callback: () => void) => {
        timers.push(callback);
        return { cancel: () => {} };
      },
    };
    let runs = 0;
    const reconcile = async (): Promise<void> => {
      runs += 1;
      nowMs += 1;
    };
    const queue = createWorkQueue({
      name: 'test',
      reconcile,
      workers: 2,
      clock,
      random: seededRandom(1),
      log: silentLog,
    });
    for (let key = 0; key < 30; key++) queue.add(`${key}`);
    await settle();
    assert.ok(runs >= 5 && runs <= 6, `${runs} reconciles in one turn`);
    for (let turn = 0; turn < 10; turn++) {
      for (const run of timers.splice(0)) run();
      await settle();
    }
    assert.deepEqual([runs, queue.length], [30, 0]);
    await queue.stop();
  });

  it('runs a key again after the current run if the key was added during the run, never concurrently', async () => {
    let running = 0;
    let most = 0;
    let runs = 0;
    const gates: (() => void)[] = [];
    const { queue } = make(
      async () => {
        runs++;
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => gates.push(resolve));
        running--;
      },
      { workers: 4 },
    );
    queue.add('a');
    await settle();
    queue.add('a');
    queue.add('a');
    await settle();
    assert.deepEqual([runs, queue.length], [1, 1]);
    gates.shift()?.();
    await settle();
    assert.equal(runs, 2);
    gates.shift()?.();
    await settle();
    assert.deepEqual([runs, most, queue.length], [2, 1, 0]);
  });

  it('a work queue processes as many keys concurrently as it has workers', async () => {
    let running = 0;
    const gates: (() => void)[] = [];
    const { queue } = make(
      async () => {
        running++;
        await new Promise<void>((resolve) => gates.push(resolve));
        running--;
      },
      { workers: 3 },
    );
    for (const key of ['a', 'b', 'c', 'd', 'e']) queue.add(key);
    await settle();
    assert.deepEqual([running, queue.length], [3, 2]);
    gates.shift()?.();
    await settle();
    assert.deepEqual([running, queue.length], [3, 1]);
  });

  it('a work queue retries failures after 5, 10, 20 … ms and resets the delay after a success', async () => {
    const at: number[] = [];
    let failing = true;
    const { queue, clock } = make(async () => {
      at.push(clock.nowMs());
      if (failing) throw new Error('not yet');
    });
    const t0 = clock.nowMs();
    queue.add('a');
    await clock.advance(100);
    assert.deepEqual(
      at.map((ms) => ms - t0),
      [0, 5, 15, 35, 75],
    );
    failing = false;
    await clock.advance(1000);
    failing = true;
    at.length = 0;
    queue.add('a');
    const t1 = clock.nowMs();
    await clock.advance(6);
    assert.deepEqual(
      at.map((ms) => ms - t1),
      [0, 5],
    );
  });

  it('a work queue limits delays of retries to 1000 s', async () => {
    const at: number[] = [];
    const { queue, clock } = make(async () => {
      at.push(clock.nowMs());
      throw new Error('never');
    });
    queue.add('a');
    await clock.advance(6_000_000);
    const gaps = at.slice(1).map((ms, index) => ms - (at[index] ?? 0));
    assert.equal(Math.max(...gaps), 1_000_000);
    assert.equal(gaps.at(-1), 1_000_000);
  });

  it('retries with a constant delay while the server is unreachable, and respects retryAfterSeconds', async () => {
    const at: number[] = [];
    let error: Error = new ConnectionError('https://x', new Error('refused'));
    const { queue, clock } = make(async () => {
      at.push(clock.nowMs());
      throw error;
    });
    queue.add('a');
    await clock.advance(10_000);
    assert.ok(at.length >= 10 && at.length <= 21, `${at.length} tries`);
    error = new ApiError('TooManyRequests', 'busy', { retryAfterSeconds: 7 });
    await clock.advance(1_000);
    const last = at.at(-1) ?? 0;
    await clock.advance(6_000);
    assert.equal(at.at(-1), last);
    await clock.advance(1_001);
    assert.notEqual(at.at(-1), last);
  });

  it('a work queue adds a key after the shortest requested delay', async () => {
    const at: number[] = [];
    const { queue, clock } = make(async () => void at.push(clock.nowMs()));
    const t0 = clock.nowMs();
    queue.addAfter('a', 500);
    queue.addAfter('a', 100);
    queue.addAfter('a', 300);
    queue.addAfter('b', 0);
    await clock.advance(1000);
    assert.deepEqual(
      at.map((ms) => ms - t0),
      [0, 100],
    );
    assert.equal(clock.pendingTimers, 0);
  });

  it('a work queue logs failures as warnings, but not conflicts', async () => {
    const lines: string[] = [];
    let error: Error = new ApiError('Conflict', 'the object has been modified');
    const { queue, clock } = make(
      async () => {
        const now = error;
        error = new Error('broken');
        throw now;
      },
      { lines },
    );
    queue.add('a');
    await clock.advance(6);
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /test: reconcile failed key=a failures=2 .*broken/);
  });

  it('a work queue finishes the keys in progress on stop and drops waiting keys', async () => {
    const ran: string[] = [];
    let open = (): void => {};
    const { queue, clock } = make(async (key) => {
      ran.push(key);
      await new Promise<void>((resolve) => {
        open = resolve;
      });
    });
    queue.add('a');
    queue.add('b');
    queue.addAfter('c', 10);
    await settle();
    let stopped = false;
    const stopping = queue.stop().then(() => {
      stopped = true;
    });
    const twice = queue.stop();
    await settle();
    assert.equal(stopped, false);
    open();
    await stopping;
    await twice;
    queue.add('d');
    await clock.advance(1000);
    assert.deepEqual(ran, ['a']);
    assert.equal(clock.pendingTimers, 0);
  });
});
