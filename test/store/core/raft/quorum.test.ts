import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Membership } from '../../../../src/store/core/raft/membership.ts';
import { jointReached, jointVote } from '../../../../src/store/core/raft/quorum.ts';
import type { ConfChange, ConfOperation } from '../../../../src/store/core/raft/types.ts';
import { Random } from '../../../sim/raft/random.ts';

const CASES = 50_000;
const IDS = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

/** Oracle: counts whether the agreeing members are more than half of the voters. */
function agrees(voters: ReadonlySet<string>, yes: (id: string) => boolean): boolean {
  return [...voters].filter(yes).length * 2 > voters.size || voters.size === 0;
}

function subset(random: Random, least: number): Set<string> {
  return new Set(random.shuffle(IDS).slice(0, Math.max(least, random.below(IDS.length + 1))));
}

describe('quorums', () => {
  it(`computes the same committed index as counting votes, in ${CASES} joint configurations`, () => {
    const random = new Random(1);
    for (let i = 0; i < CASES; i++) {
      const incoming = subset(random, 1);
      const outgoing = random.chance(0.5) ? new Set<string>() : subset(random, 1);
      const at = new Map(IDS.map((id) => [id, random.below(5)]));
      let expected = 0;
      const has = (index: number) => (id: string) => (at.get(id) ?? 0) >= index;
      while (expected < 5 && agrees(incoming, has(expected + 1)) && agrees(outgoing, has(expected + 1))) expected++;
      assert.equal(
        jointReached(incoming, outgoing, (id) => at.get(id) ?? 0),
        expected,
      );
    }
  });

  it(`computes the same vote result as counting votes, in ${CASES} joint configurations`, () => {
    const random = new Random(2);
    for (let i = 0; i < CASES; i++) {
      const incoming = subset(random, 1);
      const outgoing = random.chance(0.5) ? new Set<string>() : subset(random, 1);
      const votes = new Map(IDS.filter(() => random.chance(0.7)).map((id) => [id, random.chance(0.5)]));
      const both = (yes: (id: string) => boolean): boolean => agrees(incoming, yes) && agrees(outgoing, yes);
      const won = both((id) => votes.get(id) === true);
      const possible = both((id) => votes.get(id) !== false);
      assert.equal(jointVote(incoming, outgoing, votes), won ? 'won' : possible ? 'pending' : 'lost');
    }
  });
});

/** All sets of members that form a quorum. */
function deciding(membership: Membership): ReadonlySet<string>[] {
  const ids = membership.ids();
  const sets: ReadonlySet<string>[] = [];
  for (let mask = 0; mask < 1 << ids.length; mask++) {
    const members = new Set(ids.filter((_, i) => mask & (1 << i)));
    const has = (id: string): boolean => members.has(id);
    if (agrees(membership.incoming, has) && agrees(membership.outgoing, has)) sets.push(members);
  }
  return sets;
}

describe('configurations (thesis §4.1, §4.3)', () => {
  it('any two quorums of consecutive raft configurations share a voter', () => {
    const random = new Random(3);
    const operations: readonly ConfOperation[] = ['addVoter', 'addLearner', 'remove'];
    let changed = 0;
    for (let run = 0; run < 60; run++) {
      let membership = new Membership({ voters: ['a'], outgoing: [], learners: [], learnersNext: [] });
      for (let step = 0; step < 12; step++) {
        const count = random.chance(0.5) ? 1 : 1 + random.below(3);
        const steps = random
          .shuffle(IDS.slice(0, 5))
          .slice(0, count)
          .map((id) => ({ op: random.pick(operations) ?? 'remove', id }));
        const change: ConfChange = { steps: membership.joint ? [] : steps };
        let next: Membership;
        try {
          next = membership.after(change);
        } catch {
          continue;
        }
        const [before, after] = [deciding(membership), deciding(next)];
        for (const one of before)
          for (const other of after)
            assert.ok(
              [...one].some((id) => other.has(id) && (membership.isVoter(id) || next.isVoter(id))),
              `${JSON.stringify(membership.conf())} → ${JSON.stringify(next.conf())}`,
            );
        for (const id of next.learners) assert.ok(!next.isVoter(id), 'nobody both votes and learns');
        assert.deepEqual(new Membership(next.conf()).conf(), next.conf());
        membership = next;
        changed++;
      }
    }
    assert.ok(changed > 300);
  });

  it('rejects invalid changes of a raft configuration', () => {
    const three = new Membership({ voters: ['a', 'b', 'c'], outgoing: [], learners: ['l'], learnersNext: [] });
    const seven = new Membership({ voters: IDS, outgoing: [], learners: [], learnersNext: [] });
    const refused = (membership: Membership, change: ConfChange): void =>
      assert.throws(() => membership.after(change), { code: 'BadConfChange' });
    refused(three, { steps: [] });
    refused(three, { steps: [{ op: 'remove', id: 'x' }] });
    refused(three, { steps: [{ op: 'addVoter', id: '' }] });
    refused(three, { steps: ['a', 'b', 'c'].map((id) => ({ op: 'remove', id })) });
    refused(three, {
      steps: [
        { op: 'remove', id: 'a' },
        { op: 'addVoter', id: 'a' },
      ],
    });
    refused(seven, { steps: [{ op: 'addVoter', id: 'h' }] });
    const joint = three.after({
      steps: [
        { op: 'addVoter', id: 'l' },
        { op: 'remove', id: 'a' },
      ],
    });
    refused(joint, { steps: [{ op: 'remove', id: 'b' }] });
  });
});
