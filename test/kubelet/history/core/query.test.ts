import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toNodeName } from '../../../../src/base/brand.ts';
import { bucketsOf, downsample, type Window } from '../../../../src/kubelet/history/core/downsample.ts';
import { historyAnswer, MAX_VALUES } from '../../../../src/kubelet/history/core/history-response.ts';
import { LEVELS } from '../../../../src/kubelet/history/core/levels.ts';
import { METRICS } from '../../../../src/kubelet/history/core/metrics.ts';
import { HistoryQueryError, parseHistoryQuery } from '../../../../src/kubelet/history/core/query.ts';
import type { Series } from '../../../../src/kubelet/history/core/series.ts';
import { Timeline } from '../../../../src/kubelet/history/core/timeline.ts';
import { UsageHistory } from '../../../../src/kubelet/history/core/usage-history.ts';

const NOW = Date.UTC(2026, 10, 26, 12);
const parse = (text: string) => parseHistoryQuery(new URLSearchParams(text), NOW);

describe('parameters of the usage history', () => {
  it('parameters of the usage history default to the node, the last hour, all metrics and 300 points', () => {
    const query = parse('');
    assert.deepEqual(
      { ...query, metrics: query.metrics.length },
      {
        scope: 'node',
        namespace: undefined,
        name: undefined,
        container: undefined,
        metrics: METRICS.node.length,
        fromMs: NOW - 3_600_000,
        toMs: NOW,
        points: 300,
      },
    );
  });

  it('parameters of the usage history are rejected with the name of the parameter', () => {
    for (const [text, message] of [
      ['scope=galaxy', /^scope: "galaxy" is not one of node, slice, pod, container$/],
      ['scope=__proto__', /^scope: /],
      ['scope=pod&metric=constructor', /^metric: "constructor" is not a metric/],
      ['metric=cpu,,memory', /^metric: ""/],
      ['since=0s', /^since: /],
      ['since=-1h', /^since: /],
      ['since=32d', /^since: /],
      ['since=99999h', /^since: /],
      ['since=1h&from=2026-11-26T08:00:00Z', /^since: excludes from and to/],
      ['from=yesterday', /^from: "yesterday" is not a time/],
      ['from=2026-11-26', /^from: /],
      ['from=0001-01-01T00:00:00Z', /^from: more than 31 days/],
      ['from=2026-11-26T13:00:00Z', /^from: not before to/],
      ['from=2026-11-26T08:00:00Z&to=2026-11-26T08:00:00Z', /^from: not before to/],
      ['to=x', /^to: /],
      ['points=1e3', /^points: /],
      ['points=2001', /^points: /],
      ['points=-1', /^points: /],
      ['pod=a', /^pod: not used with scope=node; use scope=pod or container$/],
      ['scope=pod&container=a', /^container: not used with scope=pod/],
      [`scope=pod&pod=${'x'.repeat(300)}`, /^pod: longer than 253 characters$/],
      ['scope=pod&pod=a&pod=b', /^pod: given more than once/],
      ['constructor=1', /^constructor: unknown parameter/],
      [`${'y'.repeat(10_000)}=1`, /^y{40}…: unknown parameter/],
      ['scope=%1b%5b31m', /^scope: "\\u001b\[31m"/],
    ] as const)
      assert.throws(
        () => parse(text),
        (error: unknown) => error instanceof HistoryQueryError && message.test(error.message),
        text.slice(0, 60),
      );
  });
});

describe('downsampling', () => {
  const STEP = LEVELS[0].stepMs;
  /** Records the values of one pod with a timeline whose times equal the wall clock. */
  function recorded(
    startMs: number,
    endMs: number,
    value: (timeMs: number) => number | undefined,
  ): { readonly series: Series; readonly window: Window } {
    const history = new UsageHistory();
    const identity = { scope: 'pod', namespace: 'a', name: 'b', container: '' } as const;
    for (let timeMs = startMs; timeMs < endMs; timeMs += STEP) {
      history.advance(timeMs);
      const values = METRICS.pod.map(({ name }) => (name === 'memory' ? value(timeMs) : undefined));
      history.record(identity, { values, incarnation: '' }, timeMs);
    }
    history.advance(endMs);
    return {
      series: history.find(identity) as Series,
      window: {
        nowMs: endMs,
        runStartMs: startMs,
        segments: [{ fromMs: startMs, offsetMs: 0 }],
        completeUntil: (level) => history.completeUntil(level),
      },
    };
  }
  const memory = METRICS.pod.findIndex(({ name }) => name === 'memory');

  it('downsampling returns the mean and the maximum of all samples of each step, like a reference implementation', () => {
    const start = NOW - 5 * 3_600_000;
    const value = (timeMs: number): number | undefined => {
      const at = (timeMs - start) / STEP;
      return at % 400 > 340 ? undefined : 100 + 50 * Math.sin(at / 50) + (at % 97 === 0 ? 300 : 0);
    };
    const { series, window } = recorded(start, NOW, value);
    for (const [spanMs, points] of [
      [3_600_000, 240],
      [3_600_000, 60],
      [1_800_000, 7],
      [4 * 3_600_000, 60],
      [4 * 3_600_000, 16],
      [6 * 3_600_000, 30],
    ] as const) {
      const buckets = bucketsOf(NOW - spanMs, NOW, points);
      const { average, max } = downsample(series, memory, buckets, window);
      for (let bucket = 0; bucket < buckets.count; bucket++) {
        const from = buckets.fromMs + bucket * buckets.stepMs;
        const samples: number[] = [];
        for (
          let timeMs = Math.ceil(from / STEP) * STEP;
          timeMs < Math.min(NOW, from + buckets.stepMs);
          timeMs += STEP
        ) {
          const sample = timeMs < start ? undefined : value(timeMs);
          if (sample !== undefined) samples.push(sample);
        }
        const found = average[bucket] ?? Number.NaN;
        const what = `${spanMs} ${points} ${bucket}`;
        // A step that is no multiple of the level's slots shares a slot with its neighbour.
        if (buckets.stepMs % LEVELS[buckets.stepMs >= LEVELS[1].stepMs ? 1 : 0].stepMs !== 0) continue;
        if (samples.length === 0) {
          assert.ok(Number.isNaN(found), `${what}: a gap`);
          continue;
        }
        const mean = samples.reduce((sum, sample) => sum + sample, 0) / samples.length;
        // A minute that is not complete has the weight of a whole one.
        assert.ok(Math.abs(found - mean) < 12, `${what}: ${found}, expected ${mean}`);
        assert.ok((max[bucket] ?? 0) >= found - 1e-6, what);
        const isFine = buckets.stepMs < LEVELS[1].stepMs;
        if (isFine) assert.ok(Math.abs((max[bucket] ?? 0) - Math.max(...samples)) < 5, `${what}: maximum`);
      }
    }
  });

  it('downsampling returns the highest peak of the CPU, not the highest average', () => {
    const history = new UsageHistory();
    const identity = { scope: 'pod', namespace: 'a', name: 'b', container: '' } as const;
    const start = NOW - 24 * 3_600_000;
    let counter = 0;
    for (let timeMs = start; timeMs < NOW; timeMs += STEP) {
      history.advance(timeMs);
      counter += timeMs === start + 7_200_000 ? 15 * 8 : 15 * 0.5;
      history.record(identity, { values: [counter, 1], incarnation: '' }, timeMs);
    }
    history.advance(NOW);
    const buckets = bucketsOf(start, NOW, 24);
    const { average, max } = downsample(history.find(identity) as Series, 0, buckets, {
      nowMs: NOW,
      runStartMs: start,
      segments: [{ fromMs: start, offsetMs: 0 }],
      completeUntil: (level) => history.completeUntil(level),
    });
    assert.ok(Math.abs((max[2] ?? 0) - 8) < 0.1, `${max[2]}`);
    assert.ok(Math.abs((average[2] ?? 0) - 0.53) < 0.02, `${average[2]}`);
    assert.ok((max[3] ?? 0) < 0.6);
  });

  it('limits the size of a response for any requested range and number of points', () => {
    const history = new UsageHistory();
    history.advance(NOW);
    for (let at = 0; at < 300; at++)
      history.record(
        { scope: 'pod', namespace: 'a', name: `p${at}`, container: '' },
        { values: METRICS.pod.map(() => 1), incarnation: '' },
        NOW,
      );
    const window: Window = {
      nowMs: NOW,
      runStartMs: NOW,
      segments: [{ fromMs: 0, offsetMs: 0 }],
      completeUntil: (level) => history.completeUntil(level),
    };
    assert.throws(
      () => historyAnswer(parse('scope=pod&since=31d&points=2000'), toNodeName('n'), history.all(), window).next(),
      /^Error: points: 300 series with 10 metrics/,
    );
    const text = [
      ...historyAnswer(parse('scope=pod&metric=memory&points=200'), toNodeName('n'), history.all(), window),
    ].join('');
    const answer = JSON.parse(text);
    assert.equal(answer.series.length, 300);
    assert.ok(answer.series.length * answer.points <= MAX_VALUES);
    assert.ok(text.length < 2_000_000);
    assert.equal(answer.series[0].metrics.memory.average.length, answer.points);
    assert.equal(answer.series[0].metrics.memory.average.at(0), null);
  });
});

describe('timeline', () => {
  it('the timeline keeps its pace when the wall clock jumps, and shows the corrected times', () => {
    const timeline = new Timeline(1_000, 0);
    assert.equal(timeline.advance(61_000, 60_000), 60_000);
    // The clock, which was in 1970 at the boot, is synchronized.
    assert.equal(timeline.advance(62_000, NOW), 61_000);
    assert.equal(timeline.wallMs, NOW);
    assert.deepEqual(timeline.segments(), [{ fromMs: 0, offsetMs: NOW - 61_000 }]);
    // The wall clock is set back by an hour.
    assert.equal(timeline.advance(63_000, NOW - 3_600_000), 62_000);
    assert.ok(timeline.advance(62_500, NOW) === 62_000, 'never decreases');
  });

  it('the timeline continues after a restart, after the last sample even if the clock was set back', () => {
    const first = new Timeline(0, NOW);
    first.advance(3_600_000, NOW + 3_600_000);
    const saved = first.saved();
    const later = new Timeline(5, NOW + 7_200_000, saved);
    assert.equal(later.nowMs, saved.timeMs + 3_600_000);
    const withoutBattery = new Timeline(5, 1_000, saved);
    assert.equal(withoutBattery.nowMs, saved.timeMs + LEVELS[2].stepMs);
    const [before, own] = withoutBattery.segments();
    assert.equal(before?.offsetMs, 0);
    assert.equal((own?.fromMs ?? 0) + (own?.offsetMs ?? 0), 1_000);
    const future = new Timeline(5, NOW + 400 * 24 * 3_600_000, saved);
    assert.equal(future.nowMs, saved.timeMs + LEVELS[2].stepMs, 'a clock in the far future expires nothing');
  });

  it('timeline has a bounded number of segments after many restarts', () => {
    let saved = new Timeline(0, NOW).saved();
    for (let at = 0; at < 200; at++) {
      const timeline = new Timeline(0, at % 7 === 0 ? 0 : NOW + at * 60_000, saved);
      timeline.advance(30_000, NOW + at * 60_000 + 30_000);
      saved = timeline.saved();
      const froms = saved.segments.map(({ fromMs }) => fromMs);
      assert.deepEqual(
        froms,
        froms.toSorted((left, right) => left - right),
      );
    }
    assert.ok(saved.segments.length <= 33);
  });
});
