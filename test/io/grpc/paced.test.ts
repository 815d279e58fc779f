import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Paced } from '../../../src/io/grpc/paced.ts';

it('does everything in order, a few in each turn', async () => {
  const paced = new Paced(3);
  const done: number[] = [];
  const turns: number[][] = [];
  const give = (from: number, count: number): void => {
    for (let i = from; i < from + count; i += 1) paced.run(() => done.push(i));
  };
  give(0, 7);
  assert.deepEqual(done, []);
  for (let turn = 0; turn < 6; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    turns.push(done.splice(0));
    if (turn === 1) give(7, 2);
    if (turn === 4) give(9, 1);
  }
  assert.deepEqual(turns, [[0, 1, 2], [3, 4, 5], [6, 7, 8], [], [], [9]]);
});
