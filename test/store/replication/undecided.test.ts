import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Pending } from '../../../src/store/replication/pending.ts';
import { Undecided } from '../../../src/store/replication/undecided.ts';
import { clock } from '../harness.ts';

function proposal(index: number, term: number): { readonly pending: Pending; readonly outcome: Promise<string> } {
  const pending = Pending.command({ type: 'compact', revision: index });
  pending.index = index;
  pending.term = term;
  const outcome = pending.wait().then(
    () => 'committed',
    (error: { code: string }) => error.code,
  );
  return { pending, outcome };
}

describe('proposals with an undecided outcome', () => {
  test('a proposal succeeds if an entry of its term is committed at its index, and fails if another term replaced it', async () => {
    const undecided = new Undecided(clock);
    const [kept, replaced] = [proposal(7, 2), proposal(8, 2)];
    undecided.add([kept.pending, replaced.pending], 10_000);
    assert.deepEqual(undecided.committed(6, 2), []);
    assert.deepEqual(undecided.committed(7, 2), [kept.pending]);
    kept.pending.resolve();
    assert.deepEqual(undecided.committed(8, 3), []);
    assert.equal(await kept.outcome, 'committed');
    assert.equal(await replaced.outcome, 'not-leader');
  });

  test('a proposal has an unknown outcome if no new leader is elected in time', async () => {
    const undecided = new Undecided(clock);
    const lost = proposal(7, 2);
    undecided.add([lost.pending], 20);
    const held = setTimeout(() => {}, 1000);
    assert.equal(await lost.outcome, 'leader-failed');
    clearTimeout(held);
    assert.deepEqual(undecided.committed(7, 2), []);
  });
});
