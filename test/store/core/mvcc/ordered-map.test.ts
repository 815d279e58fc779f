import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OrderedMap } from '../../../../src/store/core/mvcc/ordered-map.ts';
import { generator } from '../../../support/random.ts';

interface Cell {
  readonly key: string;
  n: number;
}

const newMap = (): OrderedMap<Cell, number> => new OrderedMap((cells) => cells.reduce((sum, { n }) => sum + n, 0));

describe('ordered map', () => {
  it('the ordered map returns the same keys and summaries as a sorted list after random changes', () => {
    const next = generator(20_261_122);
    const below = (n: number): number => Math.floor(next() * n);
    const map = newMap();
    const cells = new Map<string, Cell>();
    const keyOf = (): string => `k${below(3000)}`;
    for (let step = 0; step < 20_000; step += 1) {
      const key = keyOf();
      const known = cells.get(key);
      const choice = below(10);
      if (known === undefined) {
        const cell = { key, n: below(9) };
        cells.set(key, cell);
        map.set(key, cell);
      } else if (choice < 3) {
        cells.delete(key);
        assert.ok(map.delete(key));
      } else if (choice < 5) {
        const cell = { key, n: below(9) };
        cells.set(key, cell);
        map.set(key, cell);
      } else {
        known.n += 1;
        map.changed(key);
      }
      if (step % 100 > 0) continue;
      const [start, end] = [keyOf(), below(4) === 0 ? undefined : keyOf()];
      const expected = [...cells.values()]
        .filter(({ key: each }) => each >= start && (end === undefined || each < end))
        .sort((a, b) => (a.key < b.key ? -1 : 1));
      const walked: Cell[] = [];
      map.walk(start, end, (cell) => walked.push(cell));
      assert.deepEqual(walked, expected);
      let sum = 0;
      // The caller treats some summaries as unusable.
      const isOfUse = (summary: number): boolean => {
        if (below(5) === 0) return false;
        sum += summary;
        return true;
      };
      map.skim(start, end, isOfUse, ({ n }) => {
        sum += n;
      });
      assert.equal(
        sum,
        expected.reduce((total, { n }) => total + n, 0),
        `step ${step}`,
      );
    }
  });

  it('stops the iteration of the ordered map when the visitor returns false', () => {
    const map = newMap();
    for (let n = 1000; n < 2000; n += 1) map.set(`k${n}`, { key: `k${n}`, n });
    const seen: string[] = [];
    map.walk('k1700', undefined, ({ key }) => seen.push(key) < 3);
    assert.deepEqual(seen, ['k1700', 'k1701', 'k1702']);
  });

  it('the ordered map visits no key of a subtree whose summary is sufficient', () => {
    const map = newMap();
    for (let n = 100_000; n < 200_000; n += 1) map.set(`k${n}`, { key: `k${n}`, n: 1 });
    let sum = 0;
    let visited = 0;
    const skim = (start: string, end: string | undefined): void =>
      map.skim(
        start,
        end,
        (summary) => {
          sum += summary;
          return true;
        },
        ({ n }) => {
          visited += 1;
          sum += n;
        },
      );
    skim('', undefined);
    assert.deepEqual([sum, visited], [100_000, 0]);
    sum = 0;
    skim('k100300', 'k199700');
    assert.equal(sum, 99_400);
    assert.ok(visited < 1024, `${visited} keys at both ends were looked at`);
  });
});
