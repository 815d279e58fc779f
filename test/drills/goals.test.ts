import assert from 'node:assert/strict';
import { it } from 'node:test';
import { judged } from './goals.ts';

it('misses a goal when more than one percent of the samples exceed the goal', () => {
  const quick = Array.from({ length: 199 }, () => 100);
  assert.deepEqual(judged('writes', [...quick, 1500], 200), {
    line: 'writes: p50 100 ms, p99 100 ms, max 1500 ms (200), goal 200 ms: met',
    missed: false,
  });
  const slow = judged('writes', [...quick.slice(3), 1500, 1500, 1500, 1500], 200);
  assert.equal(slow?.missed, true);
  assert.match(slow?.line ?? '', /p99 1500 ms.* goal 200 ms: MISSED$/);
  assert.equal(judged('writes', [5000], undefined)?.missed, false);
  assert.equal(judged('writes', [], 200), undefined);
});
