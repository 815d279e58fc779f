import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { evaluateAlertExpression, type Value } from '../../../src/alerts/core/evaluate.ts';
import { parseExpression } from '../../../src/alerts/core/expression.ts';
import { type Reading, SampleStore } from '../../../src/alerts/core/samples.ts';
import { generator } from '../../support/random.ts';

const reading = (metric: string, labels: Record<string, string>, value: number): Reading => ({
  metric,
  labels: new Map(Object.entries(labels)),
  value,
});

/** Values by labels, after scrapes at the given times in seconds. */
function valuesOf(
  text: string,
  scrapes: readonly (readonly [seconds: number, readings: readonly Reading[]])[],
): unknown {
  const expression = parseExpression(text);
  const samples = new SampleStore([expression], 1000);
  for (const [seconds, readings] of scrapes) samples.record('test', seconds * 1000, readings);
  return plain(evaluateAlertExpression(expression, samples, (scrapes.at(-1)?.[0] ?? 0) * 1000));
}

const plain = (value: Value): unknown =>
  typeof value === 'number'
    ? value
    : Object.fromEntries(
        value.map(({ labels, value: each }) => [[...labels].map(([name, text]) => `${name}=${text}`).join(','), each]),
      );

describe('evaluation of alert expressions', () => {
  it('comparison operators filter vectors and keep the values of matching series', () => {
    const scrape = [reading('a', { x: '1' }, 3), reading('a', { x: '2' }, 9)];
    assert.deepEqual(valuesOf('a > 5', [[0, scrape]]), { 'x=2': 9 });
    assert.deepEqual(valuesOf('a{x!~"[13]"}', [[0, scrape]]), { 'x=2': 9 });
    assert.deepEqual(valuesOf('a{x="1"} == 0', [[0, scrape]]), {});
  });

  it('matches vectors by all labels, and by the modifiers on and ignoring', () => {
    const scrape = [
      reading('used', { node: 'n', kind: 'u' }, 9),
      reading('all', { node: 'n', kind: 't' }, 10),
      reading('all', { node: 'm', kind: 't' }, 10),
    ];
    assert.deepEqual(valuesOf('used / all', [[0, scrape]]), {});
    assert.deepEqual(valuesOf('used / on (node) all > 0.8', [[0, scrape]]), { 'node=n': 0.9 });
    assert.deepEqual(valuesOf('used / ignoring (kind) all', [[0, scrape]]), { 'node=n': 0.9 });
    assert.deepEqual(valuesOf('all unless on (node) used', [[0, scrape]]), { 'node=m,kind=t': 10 });
    assert.deepEqual(valuesOf('all and on (node) used', [[0, scrape]]), { 'node=n,kind=t': 10 });
  });

  it('rejects a vector match with several series on one side', () => {
    const scrape = [reading('a', { x: '1' }, 1), reading('a', { x: '2' }, 1), reading('b', {}, 1)];
    assert.throws(() => valuesOf('a / on () b', [[0, scrape]]), { code: 'bad-rule' });
  });

  it('aggregates series by the listed labels, or by all labels except the listed ones', () => {
    const scrape = [
      reading('a', { x: '1', y: '1' }, 1),
      reading('a', { x: '1', y: '2' }, 2),
      reading('a', { x: '2', y: '1' }, 4),
    ];
    assert.deepEqual(valuesOf('sum by (x) (a)', [[0, scrape]]), { 'x=1': 3, 'x=2': 4 });
    assert.deepEqual(valuesOf('max without (y) (a)', [[0, scrape]]), { 'x=1': 2, 'x=2': 4 });
    assert.deepEqual(valuesOf('count(a) * 2 + avg(a) - min(a)', [[0, scrape]]), { '': 6 + 7 / 3 - 1 });
  });

  it('extrapolates the rate of a counter over its range, also across counter resets', () => {
    const scrapes = [0, 30, 60, 90, 120].map((at) => [at, [reading('c', {}, 1000 + at)]] as const);
    assert.deepEqual(
      valuesOf(
        'increase(c[2m])',
        scrapes.map(([at, r]) => [at, r]),
      ),
      { '': 120 },
    );
    const reset = [10, 40, 5, 35, 65].map((value, index) => [index * 30, [reading('c', {}, value)]] as const);
    // The first point is outside of the range: 40 → 5 is a reset, so the increase is 5 + 30 + 30 = 65 within 90 s.
    const [value] = Object.values(
      valuesOf(
        'increase(c[2m])',
        reset.map(([at, r]) => [at, r]),
      ) as object,
    );
    assert.ok(Math.abs(value - 65 * (120 / 90)) < 1e-9, String(value));
  });

  it('computes quantiles of a histogram', () => {
    const buckets = [
      reading('h', { le: '0.1' }, 50),
      reading('h', { le: '1' }, 100),
      reading('h', { le: '+Inf' }, 100),
    ];
    assert.deepEqual(valuesOf('histogram_quantile(0.5, h)', [[0, buckets]]), { '': 0.1 });
    assert.deepEqual(valuesOf('histogram_quantile(0.75, h)', [[0, buckets]]), { '': 0.55 });
    assert.deepEqual(valuesOf('histogram_quantile(0.9, h) > 0', [[0, buckets.slice(0, 1)]]), {});
  });

  it('returns no value for a series that the latest scrape of its target did not contain', () => {
    assert.deepEqual(
      valuesOf('a', [
        [0, [reading('a', {}, 1)]],
        [30, []],
      ]),
      {},
    );
    assert.deepEqual(
      valuesOf('changes(a[5m])', [
        [0, [reading('a', {}, 1)]],
        [30, []],
      ]),
      { '': 0 },
    );
  });
});

describe('rates of counters', () => {
  it('rates agree with the slope of counters that grow evenly, for any interval and start', () => {
    const random = generator(7);
    for (let run = 0; run < 300; run += 1) {
      const interval = 5 + Math.floor(random() * 55);
      const slope = random() * 100;
      const start = random() * 1e6 + slope * 10;
      const scrapes = Array.from(
        { length: 80 },
        (_, index) => [index * interval, [reading('c', {}, start + slope * index * interval)]] as const,
      );
      const [value] = Object.values(
        valuesOf(
          'rate(c[5m])',
          scrapes.map(([at, r]) => [at, r]),
        ) as object,
      );
      const tolerance = 1e-6 * (1 + slope);
      assert.ok(Math.abs(value - slope) <= tolerance, `run ${run}: ${value} instead of ${slope}`);
    }
  });

  it('rates are never negative despite counter resets, and zero for a constant counter', () => {
    const random = generator(11);
    for (let run = 0; run < 300; run += 1) {
      let value = random() * 100;
      const isConstant = run % 3 === 0;
      const scrapes = Array.from({ length: 12 }, (_, index) => {
        if (!isConstant) value = random() < 0.2 ? random() * 5 : value + random() * 50;
        return [index * 30, [reading('c', {}, value)]] as const;
      });
      const [rate] = Object.values(
        valuesOf(
          'rate(c[5m])',
          scrapes.map(([at, r]) => [at, r]),
        ) as object,
      );
      assert.ok(isConstant ? rate === 0 : rate >= 0, `run ${run}: ${rate}`);
    }
  });
});

describe('retention of samples', () => {
  it('keeps only samples within the longest range and at most the given number of series', () => {
    const samples = new SampleStore([parseExpression('rate(c[1m]) > 0')], 10);
    for (let at = 0; at <= 600; at += 10)
      samples.record(
        'test',
        at * 1000,
        Array.from({ length: 20 }, (_, index) => reading('c', { x: String(index) }, at)),
      );
    assert.equal(samples.size, 10);
    assert.ok(samples.dropped > 0);
    const series = samples.range('c', [], 600_000, 3_600_000);
    assert.ok(
      series.every(({ points }) => points.length <= 7),
      String(series[0]?.points.length),
    );
    samples.record('test', 2_000_000, []);
    assert.equal(samples.size, 0, 'series that are gone are forgotten');
  });
});
