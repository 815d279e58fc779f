import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toNodeName } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { ComponentCounters, HistoryFiles, HostCounters } from '../../../src/kubelet/history/port.ts';
import { UsageRecorder } from '../../../src/kubelet/history/recorder.ts';

const HOUR = 3_600_000;
const STEP = 15_000;
/** A whole number of periods of the files (30 h). */
const START = 30 * HOUR * 15_000;

/** A clock whose timers fire when a test advances it. */
class TestClock {
  monotonic = 1_000;
  wallOffset = START - 1_000;
  private timer: { readonly atMs: number; readonly callback: () => void } | undefined;

  nowMs = (): number => this.monotonic + this.wallOffset;
  monotonicMs = (): number => this.monotonic;
  setTimer = (delayMs: number, callback: () => void): { cancel: () => void } => {
    const timer = { atMs: this.monotonic + delayMs, callback };
    this.timer = timer;
    return {
      cancel: () => {
        if (this.timer === timer) this.timer = undefined;
      },
    };
  };

  async advance(ms: number): Promise<void> {
    const end = this.monotonic + ms;
    while (this.timer !== undefined && this.timer.atMs <= end) {
      const { atMs, callback } = this.timer;
      this.timer = undefined;
      this.monotonic = Math.max(this.monotonic, atMs);
      callback();
      // The round arms the next timer.
      for (let turn = 0; this.timer === undefined && turn < 100; turn++) await new Promise(setImmediate);
    }
    this.monotonic = Math.max(this.monotonic, end);
  }

  /** Takes some samples in each quarter of an hour and skips the rest of the quarter. */
  async hours(count: number): Promise<void> {
    for (let quarter = 0; quarter < count * 4; quarter++) {
      await this.advance(3 * STEP);
      this.monotonic += HOUR / 4 - 3 * STEP;
    }
  }
}

class MemoryFiles implements HistoryFiles {
  readonly content = new Map<string, Uint8Array>();
  writes = 0;
  failure: Error | undefined;

  async list(): Promise<readonly string[]> {
    return [...this.content.keys()].sort();
  }

  async read(name: string): Promise<Uint8Array> {
    return this.content.get(name) ?? new Uint8Array();
  }

  async replace(name: string, content: Uint8Array): Promise<void> {
    this.writes += 1;
    if (this.failure !== undefined) throw this.failure;
    this.content.set(name, content);
  }

  async remove(name: string): Promise<void> {
    this.content.delete(name);
  }
}

interface Answer {
  readonly series: readonly { readonly metrics: Record<string, { readonly average: (number | null)[] }> }[];
}

const noComponents = async (): Promise<ComponentCounters> => ({ api: undefined, store: undefined });

/** `load`: used cores of the node at a time. */
function host(clock: TestClock, files: HistoryFiles, load: () => number, components = noComponents) {
  let [seconds, before] = [1_000, clock.monotonic];
  const counters: HostCounters = {
    network: { receivedBytes: 0, sentBytes: 0 },
    pods: new Map(),
    diskReadBytes: undefined,
    diskWrittenBytes: 0,
    flashWrittenBytes: undefined,
    pressure: { cpuSeconds: undefined, memorySeconds: undefined, ioSeconds: undefined },
    celsius: 40,
    isThrottled: undefined,
  };
  const usage = {
    timestampMs: 0,
    bootTimeMs: 0,
    memoryAvailableBytes: 0,
    memoryUsageBytes: 0,
    memoryRssBytes: 0,
    processes: 0,
    maxProcesses: 0,
    memoryWorkingSetBytes: 1_000_000,
  };
  const recorder = new UsageRecorder({
    nodeName: toNodeName('n'),
    cgroupRoot: '/',
    clock,
    files,
    log: silentLog,
    host: { counters: async () => counters, components },
    measure: async () => {
      seconds += (load() * (clock.monotonic - before)) / 1_000;
      before = clock.monotonic;
      return { host: { ...usage, cpuUsageNanoSeconds: seconds * 1e9 }, diskUsedBytes: 5, pods: [] };
    },
    cgroups: {
      usage: async () => undefined,
      activity: async () => ({ diskReadBytes: undefined, diskWrittenBytes: undefined, pressure: counters.pressure }),
    },
  });
  const read = (query: string, metric = 'cpu'): (number | null)[] => {
    const answer: Answer = JSON.parse([...recorder.answer(new URLSearchParams(`metric=${metric}&${query}`))].join(''));
    return answer.series[0]?.metrics[metric]?.average ?? [];
  };
  return { recorder, read };
}

const known = (values: readonly (number | null)[]): number[] => values.filter((each) => each !== null);

describe('recorder of the usage history', () => {
  it('records a sample every 15 s, and a late sample leaves a gap', async () => {
    const clock = new TestClock();
    const { recorder, read } = host(clock, new MemoryFiles(), () => 2);
    await recorder.start();
    await clock.advance(20 * STEP);
    const values = read('since=5m&points=20');
    assert.ok(known(values).length >= 18 && known(values).every((value) => Math.abs(value - 2) < 0.01), values.join());
    clock.monotonic += 10 * STEP;
    await clock.advance(5 * STEP);
    const after = read('since=4m&points=16');
    assert.ok(after.filter((value) => value === null).length >= 8, after.join());
    await recorder.stop();
  });

  it('repeats a failed reading of the components in the next round', async () => {
    const clock = new TestClock();
    let rounds = 0;
    const components = async (): Promise<ComponentCounters> => {
      rounds += 1;
      const counters = { requests: clock.monotonic / 100, errors: 0 };
      // The API server does not answer in the first and the fifth round, and the store not in the first two rounds.
      const isUp = rounds !== 1 && rounds !== 5;
      const isStoreSilent = rounds <= 2;
      const store = isStoreSilent ? undefined : { flushes: clock.monotonic, flushSeconds: 1 };
      return { api: isUp ? counters : undefined, store, isStoreSilent };
    };
    const { recorder, read } = host(clock, new MemoryFiles(), () => 1, components);
    await recorder.start();
    await clock.advance(8 * STEP);
    const values = known(read('since=2m&points=8', 'apiRequests'));
    assert.ok(values.length > 0 && values.every((value) => Math.abs(value - 10) < 0.5), values.join());
    assert.ok(known(read('since=2m&points=8', 'storeFlushes')).length > 0, 'the store in the same two readings');
    await clock.advance(5 * STEP);
    const after = read('since=5m&points=20', 'apiRequests');
    assert.equal(known(after.slice(-5)).length >= 3, true, after.join());
    await recorder.stop();
  });

  it('writes at most one history file per hour, and a last file on stop', async () => {
    const clock = new TestClock();
    const files = new MemoryFiles();
    const { recorder } = host(clock, files, () => 1);
    await recorder.start();
    await clock.hours(0.75);
    assert.equal(files.writes, 0);
    for (let hour = 1; hour <= 40; hour++) {
      await clock.hours(1);
      assert.equal(files.writes, hour);
    }
    assert.equal(files.content.size, 2);
    await recorder.stop();
    assert.equal(files.writes, 41);
    await clock.hours(3);
    assert.equal(files.writes, 41);
  });

  it('continues the series after a restart, with a gap for the time of the stop', async () => {
    const clock = new TestClock();
    const files = new MemoryFiles();
    const first = host(clock, files, () => 1);
    await first.recorder.start();
    await clock.hours(50);
    await first.recorder.stop();
    // The host was off for six hours. The monotonic clock starts at zero at each boot.
    clock.wallOffset += clock.monotonic + 6 * HOUR;
    clock.monotonic = 0;
    const second = host(clock, files, () => 3);
    await second.recorder.start();
    await clock.hours(4);
    const values = second.read('since=60h&points=60').slice(-60);
    const [early, gap, late] = [values.slice(1, 49), values.slice(51, 55), values.slice(57, 60)];
    assert.ok(
      early.every((value) => value !== null && Math.abs(value - 1) < 0.02),
      early.join(),
    );
    assert.ok(
      gap.every((value) => value === null),
      gap.join(),
    );
    assert.ok(
      late.every((value) => value !== null && Math.abs(value - 3) < 0.05),
      late.join(),
    );
    await second.recorder.stop();
  });

  it('recorder of the usage history neither loses nor repeats samples if the clock starts in 1970 and is set later', async () => {
    const clock = new TestClock();
    const files = new MemoryFiles();
    const first = host(clock, files, () => 1);
    await first.recorder.start();
    await clock.hours(10);
    await first.recorder.stop();
    clock.monotonic = 0;
    clock.wallOffset = 20_000;
    const second = host(clock, files, () => 3);
    await second.recorder.start();
    await clock.hours(2);
    // Time synchronization: the host was off for an hour.
    clock.wallOffset = START + 11 * HOUR;
    await clock.hours(2);
    const check = (values: readonly (number | null)[]): void => {
      const [early, late] = [values.slice(-14, -6), values.slice(-3, -1)];
      assert.ok(
        early.every((value) => value !== null && Math.abs(value - 1) < 0.02),
        values.join(),
      );
      assert.ok(
        late.every((value) => value !== null && Math.abs(value - 3) < 0.05),
        values.join(),
      );
      assert.equal(values.at(-5), null, values.join());
    };
    check(second.read('since=15h&points=15'));
    await second.recorder.stop();
    const third = host(clock, files, () => 0);
    await third.recorder.start();
    check(third.read('since=15h&points=15'));
    await third.recorder.stop();
  });

  it('removes a damaged history file, keeps the other files, and continues after a failed write', async () => {
    const clock = new TestClock();
    const files = new MemoryFiles();
    const first = host(clock, files, () => 1);
    await first.recorder.start();
    await clock.hours(70);
    await first.recorder.stop();
    const [oldest = '', middle = '', newest = ''] = await files.list();
    files.content.set(middle, (files.content.get(middle) ?? new Uint8Array()).subarray(0, 100));
    files.content.set('999.history', files.content.get(oldest) ?? new Uint8Array());
    const second = host(clock, files, () => 1);
    await second.recorder.start();
    assert.deepEqual(await files.list(), [oldest, newest]);
    const values = second.read('since=70h&points=70').slice(-70);
    assert.ok(
      values.slice(32, 58).every((value) => value === null),
      values.join(),
    );
    assert.ok(known(values.slice(1, 28)).length === 27 && known(values.slice(62, 69)).length === 7, values.join());
    files.failure = new Error('no space left on device');
    await clock.hours(2);
    files.failure = undefined;
    await clock.hours(2);
    await second.recorder.stop();
    const third = host(clock, files, () => 1);
    await third.recorder.start();
    assert.equal(known(third.read('since=4h&points=4').slice(-4)).length, 4);
    await third.recorder.stop();
  });

  it('removes history files that are older than the retention', async () => {
    const clock = new TestClock();
    const files = new MemoryFiles();
    const { recorder } = host(clock, files, () => 1);
    await recorder.start();
    // Half an hour in each file is enough for this test.
    for (let period = 0; period < 40; period++) {
      await clock.hours(0.25);
      clock.monotonic += 30 * HOUR - HOUR / 4;
    }
    await recorder.stop();
    assert.ok(files.content.size <= 26, `${files.content.size} files`);
  });
});
