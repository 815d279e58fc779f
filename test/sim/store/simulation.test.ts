import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { perRun } from '../../support/soak.ts';
import { bugs } from './bugs.ts';
import { simulate } from './simulation.ts';

const SEEDS = perRun(100, 400);
/** Events that must occur often enough for the simulation to be meaningful. */
const OFTEN = [
  'installed snapshot',
  'renewal',
  'expiry',
  'lost relaxed writes',
  'watch overtaken by compaction',
  'KV/Compact: ok',
  'Cluster/MemberAdd: ok',
  'Cluster/MemberPromote: ok',
  'Cluster/MemberRemove: ok',
  'Maintenance/MoveLeader: ok',
  'Maintenance/Alarm: ok',
  'Auth/UserAdd: ok',
  'Auth/UserDelete: ok',
  'Auth/UserList: ok',
  'Auth/RoleRevokePermission: ok',
  'permitted',
  'not permitted',
  'authenticated',
  'token taken',
  'token not taken',
  'fragment',
  'updated',
  'quota used up',
  'several disks full',
  'snapshot resumed',
  'lock: its turn',
  'lock: left',
  'lock: at the end',
  'election: its turn',
  'election: left',
  'proclaimed',
  'observed',
  'recovered from a lost quorum',
  'ended: removed',
  'wiped',
  'voter rebuilt',
  'learner rebuilt',
  'went back',
  'answer: etcdserver: mvcc: database space exceeded',
  'answer: etcdserver: request timed out, possibly due to previous leader failure',
];
/** Rare events: the first one ends a run, the second one needs special settings. */
const NOW_AND_THEN = ['only voter lost', 'answer: etcdserver: too many requests'];
const SEEDS_TO_FIND_A_BUG = 160;

describe('simulated store', () => {
  it(`the store keeps etcd's guarantees under ${SEEDS} seeds of random faults`, async () => {
    let answered = 0;
    const seen = new Map<string, number>();
    for (let seed = 1; seed <= SEEDS; seed++) {
      const result = await simulate(seed);
      assert.equal(
        result.violation,
        undefined,
        `npm run sim -- --only store --from ${seed} --seeds 1 --trace: ${result.violation?.message}`,
      );
      answered += result.answered;
      for (const [what, count] of result.seen) seen.set(what, (seen.get(what) ?? 0) + count);
    }
    // A store that rejects every request would keep its guarantees as well.
    assert.ok(answered > SEEDS * 50, `only ${answered} operations were answered`);
    const atLeast = (times: number) => (what: string) =>
      assert.ok((seen.get(what) ?? 0) >= times, `${what}: ${seen.get(what) ?? 0} times`);
    NOW_AND_THEN.forEach(atLeast(perRun(0, 2)));
    OFTEN.forEach(atLeast(perRun(1, 10)));
  });

  it('the same seed produces the same trace of the store simulation', async () => {
    for (const seed of [2, 31, 1_999]) {
      const first = await simulate(seed);
      assert.equal((await simulate(seed)).hash, first.hash);
    }
    assert.notEqual((await simulate(2)).hash, (await simulate(3)).hash);
  });
});

describe('checkers of the store simulation detect planted bugs', () => {
  for (const bug of bugs) {
    it(`the checker of ${bug.checker} detects the planted bug: ${bug.name}`, async () => {
      for (let seed = 1; seed <= SEEDS_TO_FIND_A_BUG; seed++)
        if ((await simulate(seed, { bug })).violation?.checker === bug.checker) return;
      assert.fail(`not found in ${SEEDS_TO_FIND_A_BUG} seeds`);
    });
  }
});
