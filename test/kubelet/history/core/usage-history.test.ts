import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  decodeHistoryFile,
  encodeHistoryFile,
  historyFileOf,
} from '../../../../src/kubelet/history/core/history-file.ts';
import { LEVELS, type LevelIndex, LONG_LEVEL, periodOf, slotOf } from '../../../../src/kubelet/history/core/levels.ts';
import { METRICS } from '../../../../src/kubelet/history/core/metrics.ts';
import type { Identity, Series } from '../../../../src/kubelet/history/core/series.ts';
import { BUDGET_BYTES, MAX_SERIES, UsageHistory } from '../../../../src/kubelet/history/core/usage-history.ts';

const STEP = LEVELS[0].stepMs;
const HOUR = 3_600_000;
const MEMORY = METRICS.pod.findIndex(({ name }) => name === 'memory');
const CPU = METRICS.pod.findIndex(({ name }) => name === 'cpu');
/** A whole number of periods of the long level, so that tests are independent of the date. */
const START = LEVELS[2].stepMs * 120 * 10_000;

const pod = (name: string, namespace = 'shop'): Identity => ({ scope: 'pod', namespace, name, container: '' });
const container = (name: string, at: number): Identity => ({
  scope: 'container',
  namespace: 'shop',
  name,
  container: `c${at}`,
});
const NODE: Identity = { scope: 'node', namespace: '', name: '', container: '' };

/** A generator of reproducible numbers in [0, 1). Source: mulberry32. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const values = (scope: Identity['scope'], of: (metric: number) => number | undefined): (number | undefined)[] =>
  METRICS[scope].map((_, metric) => of(metric));

function readAll(series: Series, column: number, level: LevelIndex, fromSlot: number, toSlot: number): number[] {
  return Array.from({ length: toSlot - fromSlot }, (_, at) => series.read(column, level, fromSlot + at));
}

/** Compares within about one percent of the range of the block, and gaps exactly. */
function assertClose(actual: readonly number[], expected: readonly number[], tolerance: number, what: string): void {
  assert.equal(actual.length, expected.length);
  actual.forEach((value, at) => {
    const wanted = expected[at] ?? Number.NaN;
    if (Number.isNaN(wanted)) assert.ok(Number.isNaN(value), `${what} ${at}: ${value} in place of a gap`);
    else assert.ok(Math.abs(value - wanted) <= tolerance, `${what} ${at}: ${value}, expected ${wanted}`);
  });
}

describe('comparison of the usage history with a reference implementation', () => {
  for (const seed of [1, 2, 3, 4, 5, 6]) {
    it(`usage history keeps averages, peaks and gaps of random samples (seed ${seed})`, () => {
      const random = numbers(seed);
      const history = new UsageHistory();
      const fine: number[] = [];
      const cpu: number[] = [];
      let level = 100;
      let counter = 0;
      const rounds = 8 * 240;
      let gap = 0;
      let before: { readonly counter: number; readonly atMs: number } | undefined;
      for (let round = 0; round < rounds; round++) {
        const timeMs = START + round * STEP;
        history.advance(timeMs);
        if (gap > 0 || random() < 0.005) {
          gap = gap > 0 ? gap - 1 : Math.floor(random() * 40);
          fine.push(Number.NaN);
          cpu.push(Number.NaN);
          continue;
        }
        // Constant stretches, ramps, noise and single peaks.
        if (random() < 0.3) level = Math.max(0, level + (random() - 0.5) * 40);
        const value = random() < 0.01 ? level * 10 : level;
        const used = seed % 2 === 0 && random() < 0.5 ? 0 : random() * 30;
        const isReset = random() < 0.01;
        counter = isReset ? used : counter + used;
        history.record(
          pod('web'),
          {
            values: values('pod', (metric) => (metric === MEMORY ? value : metric === CPU ? counter : undefined)),
            incarnation: 'a',
          },
          timeMs,
        );
        fine.push(value);
        // A reset is invisible if the counter has already passed its former value.
        const isKnown = before !== undefined && timeMs - before.atMs <= 60_000;
        const increase = before === undefined || counter < before.counter ? counter : counter - before.counter;
        cpu.push(isKnown ? (increase * 1_000) / (timeMs - (before?.atMs ?? 0)) : Number.NaN);
        before = { counter, atMs: timeMs };
      }
      history.advance(START + rounds * STEP);
      const series = history.find(pod('web'));
      assert.ok(series);
      const range = Math.max(...fine.filter((value) => !Number.isNaN(value)));
      const tolerance = range * 0.015;
      const recent = rounds - 240;
      const first = slotOf(0, START);
      assertClose(readAll(series, MEMORY, 0, first + recent, first + rounds), fine.slice(recent), tolerance, 'memory');
      assertClose(readAll(series, CPU, 0, first + recent, first + rounds), cpu.slice(recent), 0.05, 'cpu');
      for (const level of [1, 2] as const) {
        const per = LEVELS[level].stepMs / STEP;
        const groups = Array.from({ length: rounds / per }, (_, at) =>
          cpu.slice(at * per, (at + 1) * per).filter((value) => !Number.isNaN(value)),
        );
        const start = slotOf(level, START);
        const averages = groups.map((group) =>
          group.length === 0 ? Number.NaN : group.reduce((sum, value) => sum + value, 0) / group.length,
        );
        const peaks = groups.map((group) => (group.length === 0 ? Number.NaN : Math.max(...group)));
        assertClose(readAll(series, CPU, level, start, start + groups.length), averages, 0.05, `average ${level}`);
        assertClose(
          ...([
            readAll(series, series.peakColumn(CPU), level, start, start + groups.length),
            peaks,
            0.05,
            'peak',
          ] as const),
        );
      }
    });
  }

  it('treats a counter of another instance and a long interruption as gaps', () => {
    const history = new UsageHistory();
    const record = (timeMs: number, counter: number, incarnation: string): void => {
      history.advance(timeMs);
      history.record(pod('web'), { values: values('pod', () => counter), incarnation }, timeMs);
    };
    record(START, 1_000, 'a');
    record(START + STEP, 1_015, 'a');
    record(START + 2 * STEP, 5_000, 'b');
    record(START + 3 * STEP, 5_030, 'b');
    record(START + 20 * STEP, 9_000, 'b');
    record(START + 21 * STEP, 9_045, 'b');
    const series = history.find(pod('web'));
    const found = readAll(series as Series, CPU, 0, slotOf(0, START), slotOf(0, START) + 22);
    const expected = Array.from({ length: 22 }, () => Number.NaN);
    [expected[1], expected[3], expected[21]] = [1, 2, 3];
    assertClose(found, expected, 0.02, 'cpu');
  });

  it('usage history removes samples that are older than the retention of their level', () => {
    const history = new UsageHistory();
    const days = 40;
    for (let at = 0; at < days * 96; at++) {
      const timeMs = START + at * LEVELS[2].stepMs;
      history.advance(timeMs);
      history.record(pod('web'), { values: values('pod', () => at), incarnation: 'a' }, timeMs);
    }
    const series = history.find(pod('web')) as Series;
    const last = slotOf(2, START) + days * 96 - 2;
    assert.ok(Math.abs(series.read(MEMORY, 2, last - 30 * 96) - (days * 96 - 2 - 30 * 96)) < 3);
    const entries = Array.from({ length: 200 * 120 }, (_, at) => series.read(MEMORY, 2, last - at)).filter(
      (value) => !Number.isNaN(value),
    );
    assert.ok(
      entries.every((value) => value >= days * 96 - 25 * 120 - 120),
      'no value of an earlier turn of the ring',
    );
  });
});

describe('memory of the usage history', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const used = (): number => {
    collect();
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };

  it('usage history needs at most 8 MB for 110 pods with two containers each whose values change all the time', (context) => {
    const random = numbers(7);
    const before = used();
    const history = new UsageHistory();
    const identities: Identity[] = [NODE];
    for (const slice of ['kubepods', 'kubepods/burstable', 'kubepods/besteffort'])
      identities.push({ scope: 'slice', namespace: '', name: slice, container: '' });
    for (let at = 0; at < 110; at++) {
      const name = `deployment-with-a-long-name-${at}-5d9c7f8b6d-x${at}`;
      identities.push(pod(name), container(name, 0), container(name, 1));
    }
    const counters = identities.map(({ scope }) => METRICS[scope].map(() => 0));
    // Thirty-one days in steps of a quarter of an hour with two samples each, then a day with two samples a minute
    // and an hour with all of them.
    const times: number[] = [];
    for (let at = 0; at < 31 * 96; at++)
      for (const shift of [0, STEP]) times.push(START + at * LEVELS[2].stepMs + shift);
    const day = START + 31 * 24 * HOUR;
    for (let at = 0; at < 26 * 240; at++) if (at >= 25 * 240 || at % 4 < 2) times.push(day + at * STEP);
    for (const timeMs of times) {
      history.advance(timeMs);
      identities.forEach((identity, at) => {
        const list = counters[at] ?? [];
        list.forEach((_, metric) => {
          list[metric] = (list[metric] ?? 0) + random() * 100;
        });
        history.record(identity, { values: list, incarnation: 'a' }, timeMs);
      });
    }
    const bytes = used() - before;
    context.diagnostic(`${bytes} bytes for ${identities.length} series, ${history.bytes} in tables and blocks`);
    assert.equal(history.size, identities.length);
    assert.ok(history.bytes <= BUDGET_BYTES, `${history.bytes} bytes of tables and blocks`);
    assert.ok(bytes <= 8 * 1024 * 1024, `${bytes} bytes`);
    // Everything about CPU and memory is kept for 30 days, also in this worst case.
    const last = slotOf(2, times.at(-1) ?? 0) - 1;
    for (const identity of identities) {
      const series = history.find(identity) as Series;
      for (const column of [0, 1]) {
        assert.ok(!Number.isNaN(series.read(column, 2, last - 29 * 96)), `${identity.name} ${column} after 29 days`);
        assert.ok(!Number.isNaN(series.read(column, 1, slotOf(1, times.at(-1) ?? 0) - 23 * 60)), 'after 23 hours');
        assert.ok(!Number.isNaN(series.read(column, 0, slotOf(0, times.at(-1) ?? 0) - 230)), 'after 58 minutes');
      }
    }
  });

  it('memory of the usage history stays within the budget during 10,000 short-lived pods, and live pods are kept', () => {
    const history = new UsageHistory();
    let counter = 0;
    const live = Array.from({ length: 20 }, (_, at) => pod(`live-${at}`, 'system'));
    for (let at = 0; at < 10_000; at++) {
      const timeMs = START + at * STEP;
      history.advance(timeMs);
      counter += 7.3 + (at % 13);
      const list = values('pod', () => counter);
      for (const identity of live) history.record(identity, { values: list, incarnation: 'a' }, timeMs);
      for (const name of [`job-${at}`, `job-${at - 1}`]) {
        history.record(pod(name), { values: list, incarnation: name }, timeMs);
        history.record(container(name, 0), { values: values('container', () => counter), incarnation: name }, timeMs);
      }
      if (at % 500 === 0) assert.ok(history.bytes <= BUDGET_BYTES && history.size <= MAX_SERIES);
    }
    assert.ok(history.bytes <= BUDGET_BYTES && history.size <= MAX_SERIES, `${history.bytes}, ${history.size}`);
    const last = START + 9_999 * STEP;
    for (const identity of live) {
      const series = history.find(identity) as Series;
      for (const level of [0, 1, 2] as const)
        assert.ok(!Number.isNaN(series.read(MEMORY, level, slotOf(level, last) - 1)), `${identity.name} ${level}`);
    }
    assert.equal(history.find(pod('job-3')), undefined);
    assert.ok(history.find(pod('job-9998')));
  });

  it('usage history refuses further series if all series are live, and keeps the existing series', () => {
    const history = new UsageHistory({ maxSeries: 3 });
    const list = values('pod', () => 5);
    history.advance(START);
    const kept = ['a', 'b', 'c', 'd'].map((name) =>
      history.record(pod(name), { values: list, incarnation: '' }, START),
    );
    assert.deepEqual(kept, [true, true, true, false]);
    history.advance(START + 10 * STEP);
    assert.equal(history.record(pod('d'), { values: list, incarnation: '' }, START + 10 * STEP), true);
    assert.equal(history.size, 3);
  });

  it('usage history rejects values that are not finite, and names of prototype members', () => {
    const history = new UsageHistory();
    history.advance(START);
    for (const name of ['__proto__', 'constructor', 'toString', '']) {
      const bad = [Number.NaN, Number.POSITIVE_INFINITY, undefined];
      history.record(pod(name), { values: bad, incarnation: '' }, START);
      assert.ok(Number.isNaN((history.find(pod(name)) as Series).read(MEMORY, 0, slotOf(0, START))));
    }
    assert.equal(history.size, 4);
  });
});

describe('files of the usage history', () => {
  function filled(): { readonly history: UsageHistory; readonly endMs: number } {
    const random = numbers(9);
    const history = new UsageHistory();
    let counter = 0;
    const endMs = START + 5 * HOUR;
    for (let timeMs = START; timeMs <= endMs; timeMs += STEP) {
      history.advance(timeMs);
      counter += random() * 20;
      history.record(pod('web'), { values: values('pod', () => counter), incarnation: 'a' }, timeMs);
      history.record(NODE, { values: values('node', (metric) => counter * metric), incarnation: 'a' }, timeMs);
      history.record(container('web', 0), { values: values('container', () => 3), incarnation: 'a' }, timeMs);
    }
    return { history, endMs };
  }
  const period = periodOf(slotOf(LONG_LEVEL, START));
  const timeline = (timeMs: number) => ({ timeMs, wallMs: timeMs, segments: [{ fromMs: START, offsetMs: 0 }] });

  it('files of the usage history restore all samples of the level with the longest retention', () => {
    const { history, endMs } = filled();
    const bytes = encodeHistoryFile(historyFileOf(history.all(), period, timeline(endMs)));
    const restored = new UsageHistory();
    restored.advance(endMs);
    restored.restore(decodeHistoryFile(bytes));
    assert.equal(restored.size, 3);
    for (const series of history.all()) {
      const same = restored.find(series.identity) as Series;
      for (let column = 0; column < series.columns; column++)
        assert.deepEqual(
          readAll(same, column, 2, slotOf(2, START), slotOf(2, endMs)),
          readAll(series, column, 2, slotOf(2, START), slotOf(2, endMs)),
        );
    }
  });

  it('files of the usage history are rejected when they are truncated, of another version, or out of range', () => {
    const { history, endMs } = filled();
    const file = historyFileOf(history.all(), period, timeline(endMs));
    const bytes = encodeHistoryFile(file);
    for (let length = 0; length < bytes.length; length++)
      assert.throws(() => decodeHistoryFile(bytes.subarray(0, length)), RangeError, `${length} bytes`);
    assert.throws(() => decodeHistoryFile(Uint8Array.from([...bytes, 0])), /bytes after the last block/);
    const changed = (from: string, to: string): Uint8Array => {
      const length = new DataView(bytes.buffer).getUint32(0);
      const header = Buffer.from(bytes.subarray(4, 4 + length)).toString();
      assert.ok(header.includes(from), from);
      const next = Buffer.from(header.replace(from, to));
      const size = Buffer.alloc(4);
      size.writeUInt32BE(next.length);
      return Buffer.concat([size, next, bytes.subarray(4 + length)]);
    };
    for (const [from, to, reason] of [
      ['"version":1', '"version":2', /unknown version 2/],
      ['"scope":"pod"', '"scope":"dog"', /unknown scope/],
      [`"period":${period}`, `"period":${period + 1}`, /period is out of range/],
      [`"period":${period}`, '"period":1e400', /period is out of range/],
      [`"timeMs":${endMs}`, '"timeMs":-1', /timeMs is out of range/],
      ['"name":"web"', `"name":"${'x'.repeat(300)}"`, /name is not a name/],
      ['"name":"web"', '"name":{"toString":1}', /name is not a name/],
      ['"segments":[', '"segments":[{"fromMs":9e15,"offsetMs":0},', /fromMs is out of range/],
    ] as const)
      assert.throws(() => decodeHistoryFile(changed(from, to)), reason, `${from} → ${to}`);
  });

  it('files of the usage history with random damage are rejected or yield finite numbers', () => {
    const { history, endMs } = filled();
    const bytes = encodeHistoryFile(historyFileOf(history.all(), period, timeline(endMs)));
    const random = numbers(11);
    let rejected = 0;
    for (let round = 0; round < 300; round++) {
      const damaged = Uint8Array.from(bytes);
      for (let times = 0; times < 3; times++)
        damaged[Math.floor(random() * damaged.length)] = Math.floor(random() * 256);
      const restored = new UsageHistory();
      restored.advance(endMs);
      try {
        restored.restore(decodeHistoryFile(damaged));
      } catch (error) {
        assert.ok(error instanceof RangeError, String(error));
        rejected += 1;
      }
      for (const series of restored.all())
        for (const value of readAll(series, 0, 2, slotOf(2, START), slotOf(2, endMs)))
          assert.ok(Number.isNaN(value) || Number.isFinite(value));
    }
    assert.ok(rejected > 100);
  });
});
