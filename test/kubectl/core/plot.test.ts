import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { plotLines, plotWidth, valueText } from '../../../src/kubectl/core/plot.ts';

const style = { width: 8, height: 2, isUnicode: true, format: (value: number) => String(Math.round(value)) };
const cellsOf = (line: string | undefined): string => (line ?? '').slice(12);

describe('plots on a terminal', () => {
  it('plots on a terminal have a column for each point, the highest point at the top, and spaces for gaps', () => {
    const lines = plotLines([0, 8, 16, undefined, 4, null], style);
    assert.equal(lines.length, 2);
    assert.equal(cellsOf(lines[0]), '  █');
    assert.equal(cellsOf(lines[1]), '▁██ ▄');
    assert.match(lines[0] ?? '', /^ +16 ┤/);
    assert.match(lines[1] ?? '', /^ +0 ┤/);
  });

  it('plots on a terminal show the highest point of each column if there are more points than columns', () => {
    const points = Array.from({ length: 80 }, (_, at) => (at === 37 ? 100 : 10));
    const [top = ''] = plotLines(points, style);
    assert.equal(cellsOf(top).indexOf('█'), 3);
    assert.equal([...cellsOf(plotLines(points, style)[1])].length, 8);
  });

  it('plots on a terminal use ASCII without Unicode support, and are empty without values', () => {
    assert.match(plotLines([1, 2, 3], { ...style, isUnicode: false }).join('\n'), /^[ -~\n]+$/);
    assert.deepEqual(plotLines([undefined, null, Number.NaN, Number.POSITIVE_INFINITY], style), []);
    assert.deepEqual(plotLines([], style), []);
  });

  it('plots on a terminal show equal values, zeros and small changes of large values', () => {
    assert.equal(cellsOf(plotLines([0, 0], style)[1]), '▁▁');
    assert.equal(cellsOf(plotLines([5, 5], style)[0]), '██');
    const memory = plotLines([1_000_000, 1_010_000], style).map(cellsOf);
    assert.notEqual([...(memory[0] ?? '')][0], [...(memory[0] ?? '')][1]);
  });

  it('plots on a terminal never exceed the width of the terminal', () => {
    for (const columns of [0, 20, 80, 200]) {
      const width = plotWidth(columns);
      const lines = plotLines(
        Array.from({ length: 500 }, (_, at) => at),
        { ...style, width },
      );
      for (const line of lines) assert.ok([...line].length <= Math.max(columns, 22), `${columns}: ${line.length}`);
    }
  });

  it('plots on a terminal format values with their unit', () => {
    assert.deepEqual(
      [
        ...[valueText(0.25, 'cores'), valueText(3.456, 'cores'), valueText(1_610_612_736, 'bytes')],
        ...[valueText(2_048, 'bytes/s'), valueText(0.125, 'ratio'), valueText(0.0034, 'seconds')],
        ...[valueText(51.26, 'celsius'), valueText(12.34, 'operations/s'), valueText(0, 'bytes')],
      ],
      ['250m', '3.46', '1.5Gi', '2Ki/s', '12.5%', '3.4ms', '51.3C', '12.3/s', '0'],
    );
  });
});
