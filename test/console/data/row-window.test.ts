import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type RowWindowFacts, rowWindow } from '../../../src/console/data/row-window.ts';

const facts = (changes: Partial<RowWindowFacts>): RowWindowFacts => ({
  count: 1_000,
  heightOf: () => undefined,
  estimate: 50,
  top: 0,
  height: 500,
  margin: 100,
  ...changes,
});

describe('rows of a long list that are in the page', () => {
  it('covers the visible part and the margin, with spaces for the other rows', () => {
    assert.deepEqual(rowWindow(facts({})), { first: 0, end: 14, before: 0, after: 49_300 });
    assert.deepEqual(rowWindow(facts({ top: 1_000 })), { first: 18, end: 32, before: 900, after: 48_400 });
  });

  it('ends with the last row if the list became shorter than the scroll position', () => {
    assert.deepEqual(rowWindow(facts({ count: 20, top: 40_000 })), { first: 8, end: 20, before: 400, after: 0 });
    assert.deepEqual(rowWindow(facts({ count: 0, top: 40_000 })), { first: 0, end: 0, before: 0, after: 0 });
  });

  it('uses measured heights, so that rows and spaces always have the height of the list', () => {
    const heightOf = (index: number): number | undefined => (index % 3 === 0 ? undefined : 20 + (index % 7) * 30);
    const total = Array.from({ length: 1_000 }, (_, index) => heightOf(index) ?? 50).reduce((a, b) => a + b, 0);
    for (let top = 0; top < total; top += 331) {
      const { first, end, before, after } = rowWindow(facts({ heightOf, top }));
      let rows = 0;
      for (let index = first; index < end; index++) rows += heightOf(index) ?? 50;
      assert.equal(before + rows + after, total);
      assert.ok(before <= top && before + rows >= Math.min(top + 500, total), `top ${top}`);
    }
  });
});
