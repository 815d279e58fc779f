import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newestFirst } from '../../../src/store/administration/snapshot-order.ts';

const of = (clusterId: string, revision: number, takenMs: number) => ({ clusterId, revision, takenMs });

test('orders snapshots of a cluster by revision and clusters by date, with the current cluster first', () => {
  const [a1, a2, b1, b2] = [of('a', 10, 900), of('a', 20, 1), of('b', 5, 500), of('b', 6, 1000)];
  const all = [a1, a2, b1, b2];
  assert.deepEqual(
    newestFirst(all, () => true),
    [b2, b1, a2, a1],
  );
  assert.deepEqual(
    newestFirst(all, ({ revision }) => revision >= 15),
    [a2, a1, b2, b1],
  );
});
