import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Histogram } from '../../../src/base/metrics/histogram.ts';
import { MetricsText } from '../../../src/base/metrics/metrics-text.ts';
import { generator } from '../../support/random.ts';

/** Oracle: reads one sample character by character, as the format's grammar describes it. */
function parse(line: string): {
  readonly name: string;
  readonly labels: Record<string, string>;
  readonly rest: string;
} {
  const labels: Record<string, string> = {};
  let at = line.search(/[{ ]/);
  const name = line.slice(0, at);
  if (line[at] === '{') {
    at++;
    while (line[at] !== '}') {
      const equals = line.indexOf('=', at);
      const label = line.slice(at, equals);
      let value = '';
      for (at = equals + 2; line[at] !== '"'; at++) {
        if (line[at] !== '\\') value += line[at];
        else value += line[++at] === 'n' ? '\n' : line[at];
      }
      labels[label] = value;
      at++;
      if (line[at] === ',') at++;
    }
    at++;
  }
  return { name, labels, rest: line.slice(at + 1) };
}

test('escapes random label values so that a parser reads the same values', () => {
  const random = generator(11);
  const characters = ['a', '"', '\\', '\n', ',', '}', '=', ' ', 'n', 'ä'];
  for (let run = 0; run < 3_000; run++) {
    const labels: Record<string, string> = {};
    for (const name of ['one', 'two', 'three'])
      if (random() < 0.7)
        labels[name] = Array.from(
          { length: Math.floor(random() * 6) },
          () => characters[Math.floor(random() * 10)],
        ).join('');
    const text = new MetricsText();
    const value = Math.floor(random() * 1e6) / 8;
    const timeMs = random() < 0.5 ? undefined : Math.floor(random() * 1e12);
    text.sample('some_total', labels, value, timeMs);
    const line = text.toString();
    assert.equal(line.indexOf('\n'), line.length - 1);
    const expected = { name: 'some_total', labels, rest: `${value}${timeMs === undefined ? '' : ` ${timeMs}`}` };
    assert.deepEqual(parse(line.slice(0, -1)), expected);
  }
});

test('writes metrics in text format: counters, gauges and histograms', () => {
  const histogram = new Histogram([0.5, 1]);
  for (const value of [0.25, 0.75, 2]) histogram.observe(value);
  const text = new MetricsText();
  assert.equal(text.toString(), '');
  text.counter('a_total', 'All.', 3);
  text.gauge('b', 'Parts.', [{ labels: { part: 'x' }, value: 1 }, { value: 2 }]);
  text.histograms('c_seconds', 'Times.', [[{ of: 'y' }, histogram]]);
  assert.equal(
    text.toString(),
    [
      ...['# HELP a_total All.', '# TYPE a_total counter', 'a_total 3'],
      ...['# HELP b Parts.', '# TYPE b gauge', 'b{part="x"} 1', 'b 2'],
      ...['# HELP c_seconds Times.', '# TYPE c_seconds histogram'],
      ...['c_seconds_bucket{of="y",le="0.5"} 1', 'c_seconds_bucket{of="y",le="1"} 2'],
      ...['c_seconds_bucket{of="y",le="+Inf"} 3', 'c_seconds_sum{of="y"} 3', 'c_seconds_count{of="y"} 3', ''],
    ].join('\n'),
  );
});
