import assert from 'node:assert/strict';
import { test } from 'node:test';
import { layoutLine, layoutOf } from '../../../src/host/control/store-layout.ts';

test('reports the failure tolerance of a store layout and how to improve it', () => {
  const lines: readonly (readonly [voters: number, learners: number, line: string])[] = [
    [1, 0, 'store: 1 voter; survives the loss of no member; join two more masters to survive the loss of one'],
    [1, 1, 'store: 1 voter, 1 learner; survives the loss of no member; join another master to survive the loss of one'],
    [2, 0, 'store: 2 voters; survives the loss of no member; join another master to survive the loss of one'],
    [3, 0, 'store: 3 voters; survives the loss of 1 member'],
    [3, 1, 'store: 3 voters, 1 learner; survives the loss of 1 member; join another master to survive the loss of 2'],
    [4, 0, 'store: 4 voters; survives the loss of 1 member; join another master to survive the loss of 2'],
    [5, 0, 'store: 5 voters; survives the loss of 2 members'],
  ];
  for (const [voters, learners, line] of lines) assert.equal(layoutLine(layoutOf(voters, learners)), line);
});
