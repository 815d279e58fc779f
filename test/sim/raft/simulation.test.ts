import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { perRun } from '../../support/soak.ts';
import { bugs } from './bugs.ts';
import { simulate } from './simulation.ts';

const SEEDS = perRun(400, 2_000);
/** Events that must occur often enough for the simulation to be meaningful. */
const RARE = [
  'leader',
  'rejected append',
  'installed snapshot',
  'failed snapshot',
  'entries read',
  'joint configuration',
  'timeoutNow',
  'propose',
  'readIndexResp',
  'aborted read',
  'Overloaded',
  'Transferring',
];
const SEEDS_TO_FIND_A_BUG = 80;

describe('simulated raft cluster', () => {
  it(`a raft cluster keeps its guarantees under ${SEEDS} seeds of random faults`, () => {
    let answered = 0;
    const seen = new Map<string, number>();
    for (let seed = 1; seed <= SEEDS; seed++) {
      const result = simulate(seed);
      assert.equal(
        result.violation,
        undefined,
        `npm run sim -- --from ${seed} --seeds 1 --trace: ${result.violation?.message}`,
      );
      answered += result.answered;
      for (const [what, count] of result.seen) seen.set(what, (seen.get(what) ?? 0) + count);
    }
    // A cluster that rejects every request would keep its guarantees as well.
    assert.ok(answered > SEEDS * 20, `only ${answered} operations were answered`);
    for (const what of RARE) assert.ok((seen.get(what) ?? 0) >= perRun(2, 10), `${what}: ${seen.get(what) ?? 0} times`);
  });

  it('the same seed produces the same trace of the raft simulation', () => {
    for (const seed of [3, 77, 2_024]) {
      const first = simulate(seed, { keepTrace: true });
      const second = simulate(seed, { keepTrace: true });
      assert.deepEqual(second.trace, first.trace);
      assert.equal(second.hash, first.hash);
    }
    assert.notEqual(simulate(3).hash, simulate(4).hash);
  });
});

describe('checkers of the raft simulation detect planted bugs', () => {
  for (const bug of bugs) {
    it(`the checker of ${bug.checker} detects the planted bug: ${bug.name}`, () => {
      for (let seed = 1; seed <= SEEDS_TO_FIND_A_BUG; seed++)
        if (simulate(seed, { bug }).violation?.checker === bug.checker) return;
      assert.fail(`not found in ${SEEDS_TO_FIND_A_BUG} seeds`);
    });
  }
});
