/** UID ranges and SELinux levels of namespaces, as OpenShift allocates them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Namespace } from '../../../../src/api/generated/core/v1.ts';
import {
  allocationOf,
  blockOf,
  planAllocation,
  RANGE,
} from '../../../../src/openshift/security-context-constraints/core/namespace-ranges.ts';

const UID = 'openshift.io/sa.scc.uid-range';
const GROUPS = 'openshift.io/sa.scc.supplemental-groups';
const MCS = 'openshift.io/sa.scc.mcs';
const namespace = (annotations: Record<string, string> = {}): Namespace => ({ metadata: { name: 'n', annotations } });
const upTo = (count: number): Set<number> => new Set(Array.from({ length: count }, (_, index) => index));

describe('allocation of user IDs for a namespace', () => {
  it('assigns the first free block of user IDs and its SELinux level to a namespace', () => {
    const cases: readonly [used: number, range: string, level: string][] = [
      [0, '1000000000/10000', 's0:c1,c0'],
      [1, '1000010000/10000', 's0:c3,c2'],
      [62, '1000620000/10000', 's0:c25,c10'],
      [99_999, '1999990000/10000', 's0:c1000,c495'],
    ];
    for (const [used, range, level] of cases) {
      const plan = planAllocation(namespace(), upTo(used));
      assert.ok(plan.kind === 'annotate', range);
      assert.deepEqual(plan.annotations, { [UID]: range, [GROUPS]: range, [MCS]: level });
    }
    const gap = planAllocation(namespace(), new Set([0, 1, 3]));
    assert.ok(gap.kind === 'annotate' && gap.block === 2);
  });

  it('reports an exhausted range when no block of user IDs is free for a namespace', () => {
    assert.deepEqual(planAllocation(namespace(), upTo(100_000)), { kind: 'full' });
  });

  it('keeps existing user ID annotations of a namespace and adds missing ones', () => {
    const whole = { [UID]: '1000050000/10000', [GROUPS]: '5/5', [MCS]: 's0:c9,c8' };
    assert.deepEqual(planAllocation(namespace(whole), new Set()), { kind: 'keep' });
    const part = planAllocation(namespace({ [UID]: '1000620000/10000' }), new Set([62]));
    assert.ok(part.kind === 'annotate');
    assert.deepEqual(part.annotations, { [GROUPS]: '1000620000/10000', [MCS]: 's0:c25,c10' });
  });

  it('allocates no user IDs for a namespace that is being deleted', () => {
    const leaving = { metadata: { name: 'n', deletionTimestamp: '2026-01-01T00:00:00Z' } };
    assert.deepEqual(planAllocation(leaving, new Set()), { kind: 'keep' });
  });
});

describe('bit map of allocated user ID blocks', () => {
  it('stores allocated user ID blocks as a bit map with the lowest block in the last bit', () => {
    const { range, data } = allocationOf(new Set([0, 9]));
    assert.equal(range, RANGE);
    assert.deepEqual([...Buffer.from(data ?? '', 'base64')], [0b10, 0b1]);
    assert.equal(allocationOf(new Set()).data, '');
  });

  it('ignores annotated user ID ranges that are not a block of the allocator', () => {
    assert.equal(blockOf(namespace({ [UID]: '1000020000/10000' })), 2);
    for (const wrong of ['1000020001/10000', '500/10', '2000000000/10000', 'x'])
      assert.equal(blockOf(namespace({ [UID]: wrong })), undefined, wrong);
  });
});
