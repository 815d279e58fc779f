/** Compares the rig planner with a simple oracle, and simulates claims with their pods. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResourceClaim } from '../../../src/api/devices/types.ts';
import type { Node, Pod } from '../../../src/api/generated/core/v1.ts';
import { planRigs, type RigPlan, type RigSnapshot } from '../../../src/rigs/core/plan.ts';
import { fairOrder, requesterOf } from '../../../src/rigs/core/queue.ts';
import type { Rig, RigClaim } from '../../../src/rigs/kinds/rig-types.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const at = (seconds: number): string => new Date(NOW + seconds * 1000).toISOString().replace('.000Z', 'Z');

const node: Node = {
  metadata: { name: 'n1', labels: { 'kubernetes.io/hostname': 'host-1' } },
  status: { capacity: { 'rig.hyperedge.dev/board-1': '1', 'rig.hyperedge.dev/board-2': '1' } },
};
const rig = (name: string, fixture: string, labels: Record<string, string> = {}): Rig => ({
  metadata: { name, labels },
  spec: { fixtures: [{ name: 'board', fixture }], maxLease: '1h' },
});
const claim = (name: string, user: string, second: number, more: Partial<RigClaim> = {}): RigClaim => ({
  metadata: { name, namespace: 'lab', uid: name, creationTimestamp: at(second) as never },
  spec: { rigName: 'rig-1' },
  ...more,
  status: { phase: 'Queued', requester: user, ...more.status },
});
const pod = (name: string, claimed: string | undefined, gated: boolean): Pod => ({
  metadata: {
    name,
    namespace: 'lab',
    uid: name,
    ...(claimed === undefined ? {} : { annotations: { 'rig.hyperedge.dev/claim': claimed } }),
  },
  spec: {
    containers: [{ name: 'c', resources: { limits: { 'rig.hyperedge.dev/board-1': '1' } } }],
    ...(gated ? { schedulingGates: [{ name: `rig.hyperedge.dev/${claimed}` }] } : {}),
  },
});
const plan = (given: Partial<RigSnapshot>, nowMs = NOW): RigPlan =>
  planRigs({ rigs: [rig('rig-1', 'board-1')], claims: [], pods: [], nodes: [node], deviceClaims: [], ...given }, nowMs);
const phases = ({ claims }: RigPlan): Record<string, string> =>
  Object.fromEntries([...claims].map(([key, { phase, position = 0 }]) => [key.slice(4), `${phase} ${position}`]));

/** Oracle: repeatedly takes the oldest claim of the requesters with the fewest turns. */
function oracle(waiting: readonly RigClaim[], holder: string | undefined): string[] {
  const left = waiting.map((each) => ({
    name: each.metadata?.name ?? '',
    who: requesterOf(each),
    made: Date.parse(String(each.metadata?.creationTimestamp)),
  }));
  const had = (who: string, used: readonly { who: string }[]): number =>
    used.filter((each) => each.who === who).length + (who === holder ? 1 : 0);
  const used: typeof left = [];
  while (left.length > 0) {
    let best = 0;
    for (let index = 1; index < left.length; index += 1) {
      const [a, b] = [left[index], left[best]];
      if (a === undefined || b === undefined) continue;
      const [turnsA, turnsB] = [had(a.who, used), had(b.who, used)];
      if (turnsA < turnsB || (turnsA === turnsB && (a.made < b.made || (a.made === b.made && a.name < b.name))))
        best = index;
    }
    used.push(...left.splice(best, 1));
  }
  return used.map(({ name }) => name);
}

test('orders waiting claims so that users take turns, like an oracle, in 3,000 random queues', () => {
  let seed = 42;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return (seed >>> 8) % below;
  };
  for (let round = 0; round < 3_000; round += 1) {
    const waiting = Array.from({ length: random(9) }, (_, index) => claim(`c${index}`, `user-${random(4)}`, random(6)));
    const holder = random(2) === 0 ? undefined : `lab/user-${random(4)}`;
    assert.deepEqual(
      fairOrder(waiting, holder).map(({ metadata }) => metadata?.name),
      oracle(waiting, holder),
      `round ${round}`,
    );
  }
});

test('grants the rig to one claim at a time, and alternates between users regardless of their number of claims', () => {
  const first = plan({
    claims: [claim('a1', 'ann', 0), claim('a2', 'ann', 1), claim('a3', 'ann', 2), claim('b1', 'bob', 3)],
  });
  assert.deepEqual(phases(first), { a1: 'Granted 0', a2: 'Queued 2', a3: 'Queued 3', b1: 'Queued 1' });
  assert.equal(first.claims.get('lab/a1')?.expiresAt, at(3600));
  assert.equal(first.nextMs, NOW + 3_600_000);
  assert.deepEqual(first.rigs.get('rig-1'), {
    node: 'n1',
    queue: 3,
    expiresAt: at(3600),
    holder: { namespace: 'lab', name: 'a1', requester: 'ann' },
    history: [{ namespace: 'lab', name: 'a1', uid: 'a1', requester: 'ann', node: 'n1', grantedAt: at(0) }],
  });
});

test('limits the requested duration of a lease to the maximum of the rig', () => {
  const wants = (duration: string) =>
    plan({ claims: [claim('a', 'ann', 0, { spec: { rigName: 'rig-1', duration } })] }).claims.get('lab/a')?.expiresAt;
  assert.equal(wants('10m'), at(600));
  assert.equal(wants('5h'), at(3600));
});

test('evicts the pods of a claim at the end of its lease, and grants the next claim after they have terminated', () => {
  const held = claim('a', 'ann', 0, { status: { phase: 'Granted', rig: 'rig-1', expiresAt: at(10) } });
  const waiting = claim('b', 'bob', 1);
  const user = pod('p', 'a', false);
  const before = plan({ claims: [held, waiting], pods: [user] }, NOW + 9_000);
  assert.deepEqual([phases(before), before.evict], [{ a: 'Granted 0', b: 'Queued 1' }, []]);
  const after = plan({ claims: [held, waiting], pods: [user] }, NOW + 10_000);
  assert.deepEqual(phases(after), { a: 'Expired 0', b: 'Queued 1' });
  assert.deepEqual(
    after.evict.map(({ reason, message }) => [reason, message]),
    [['RigLeaseExpired', 'RigClaim a: the lease of rig rig-1 has ended; create a claim to use the rig again']],
  );
  const ended: Pod = { ...user, status: { phase: 'Failed' } };
  assert.deepEqual(phases(plan({ claims: [held, waiting], pods: [ended] }, NOW + 10_000)), {
    a: 'Expired 0',
    b: 'Granted 0',
  });
});

test('evicts a pod that is already being deleted, if its grace period is longer than that of an eviction', () => {
  const held = claim('a', 'ann', 0, { status: { phase: 'Granted', rig: 'rig-1', expiresAt: at(10) } });
  const deleted = (deletionGracePeriodSeconds: number): Pod => {
    const { metadata, ...rest } = pod('p', 'a', false);
    return { ...rest, metadata: { ...metadata, deletionTimestamp: at(5) as never, deletionGracePeriodSeconds } };
  };
  const evicted = (seconds: number) => plan({ claims: [held], pods: [deleted(seconds)] }, NOW + 10_000).evict.length;
  assert.deepEqual([evicted(30), evicted(86_400)], [0, 1]);
});

test('evicts the pods of a deleted claim, and releases the rig after the last pod has terminated', () => {
  const deleted = claim('a', 'ann', 0, { status: { phase: 'Granted', rig: 'rig-1', expiresAt: at(99) } });
  deleted.metadata = {
    ...deleted.metadata,
    deletionTimestamp: at(1) as never,
    finalizers: ['rig.hyperedge.dev/release'],
  };
  const with1 = plan({ claims: [deleted, claim('b', 'bob', 1)], pods: [pod('p', 'a', false)] });
  assert.deepEqual(
    [phases(with1), with1.evict.length, with1.release.length],
    [{ a: 'Released 0', b: 'Queued 1' }, 1, 0],
  );
  const without = plan({ claims: [deleted, claim('b', 'bob', 1)] });
  assert.deepEqual([phases(without), without.release.length], [{ a: 'Released 0', b: 'Granted 0' }, 1]);
});

test('keeps a rig for the pod of a deleted claim while another claim has the same name', () => {
  const rigs = [rig('rig-1', 'board-1'), rig('rig-2', 'board-2')];
  const again = claim('a', 'ann', 1, { spec: { rigName: 'rig-2' } });
  const [user, waiting] = [pod('p', 'a', false), claim('b', 'bob', 2)];
  const recreated = plan({ rigs, claims: [again, waiting], pods: [user] });
  assert.deepEqual([phases(recreated), recreated.evict.length], [{ a: 'Queued 1', b: 'Queued 1' }, 1]);
  // A claim that an earlier release has granted although the pod runs does not free the other rig.
  const granted = { ...again, status: { phase: 'Granted', rig: 'rig-2', expiresAt: at(99) } } as RigClaim;
  assert.deepEqual(phases(plan({ rigs, claims: [granted, waiting], pods: [user] })), { a: 'Granted 0', b: 'Queued 1' });
  assert.deepEqual(phases(plan({ rigs, claims: [again, waiting] })), { a: 'Granted 0', b: 'Granted 0' });
});

test('removes the scheduling gate of a pod when its claim is granted, and selects the node of the rig', () => {
  const granted = claim('a', 'ann', 0, { status: { phase: 'Granted', rig: 'rig-1', expiresAt: at(10) } });
  const passes = plan({ claims: [granted], pods: [pod('p', 'a', true)] });
  assert.deepEqual(passes.ungate[0]?.nodeSelector, { 'kubernetes.io/hostname': 'host-1' });
  assert.equal(passes.ungate[0]?.gate, 'rig.hyperedge.dev/a');
  assert.deepEqual(plan({ claims: [claim('a', 'ann', 0)], nodes: [], pods: [pod('p', 'a', true)] }).ungate, []);
  const other = { ...granted, status: { ...granted.status, rig: 'rig-2' } };
  const kept = plan({
    rigs: [rig('rig-1', 'board-1'), rig('rig-2', 'board-2')],
    claims: [other],
    pods: [pod('p', 'a', true)],
  });
  assert.deepEqual([kept.ungate, kept.refused[0]?.reason], [[], 'FixtureOfOtherRig']);
  const selecting = (hostname: string): RigPlan => {
    const { spec, ...rest } = pod('p', 'a', true);
    const nodeSelector = { 'kubernetes.io/hostname': hostname };
    return plan({ claims: [granted], pods: [{ ...rest, spec: { containers: [], ...spec, nodeSelector } }] });
  };
  assert.equal(selecting('host-1').ungate.length, 1);
  assert.deepEqual([selecting('host-2').ungate, selecting('host-2').refused[0]?.reason], [[], 'OtherNodeSelected']);
});

test('does not grant a rig if no node has all its fixtures, and reports the reason on the claim', () => {
  const none = plan({ claims: [claim('a', 'ann', 0)], nodes: [] });
  assert.deepEqual(phases(none), { a: 'Queued 1' });
  assert.match(none.claims.get('lab/a')?.conditions?.[0]?.message ?? '', /no node has all fixtures of rig rig-1/);
});

test('keeps the node of a rig while it is ready, although an earlier node in the list reports the same fixtures', () => {
  const ready = (name: string, is: boolean): Node => ({
    metadata: { name, labels: { 'kubernetes.io/hostname': name } },
    status: { ...node.status, conditions: [{ type: 'Ready', status: is ? 'True' : 'False' } as never] },
  });
  const known = { ...rig('rig-1', 'board-1'), status: { node: 'n1' } };
  const nodeWith = (nodes: readonly Node[], of: Rig = known) => plan({ rigs: [of], nodes }).rigs.get('rig-1')?.node;
  assert.equal(nodeWith([ready('a-liar', true), ready('n1', true)]), 'n1');
  assert.equal(nodeWith([ready('new', true), ready('n1', false)]), 'new');
  assert.equal(nodeWith([ready('other', false), ready('n1', false)]), 'n1');
  assert.equal(nodeWith([ready('new', true)]), 'new');
  assert.equal(nodeWith([ready('n2', true), ready('n1', true)], rig('rig-1', 'board-1')), 'n2');
});

test('does not grant a rig while a pod without a claim uses its fixture', () => {
  assert.deepEqual(phases(plan({ claims: [claim('a', 'ann', 0)], pods: [pod('p', undefined, false)] })), {
    a: 'Queued 1',
  });
});

test('grants rigs with a common fixture to one claim at a time, the longest waiting claim first', () => {
  const rigs = [rig('rig-1', 'board-1'), rig('rig-2', 'board-1')];
  const second = claim('b', 'bob', 1, { spec: { rigName: 'rig-2' } });
  const both = plan({ rigs, claims: [claim('a', 'ann', 0), second] });
  assert.deepEqual(phases(both), { a: 'Granted 0', b: 'Queued 1' });
  assert.equal(
    both.claims.get('lab/b')?.conditions?.[0]?.message,
    'place 1 in the queue of rig rig-2; a fixture is in use by rig rig-1',
  );
  assert.deepEqual(phases(plan({ rigs, claims: [claim('a', 'ann', 2), second] })), { a: 'Queued 1', b: 'Granted 0' });
  const held = claim('a', 'ann', 0, { status: { phase: 'Granted', rig: 'rig-1', expiresAt: at(9) } });
  assert.deepEqual(phases(plan({ rigs, claims: [held, second] })), { a: 'Granted 0', b: 'Queued 1' });
});

test('grants rigs at the same time if they have only a relay board in common', () => {
  const withRelay = (name: string, fixture: string, channel: number): Rig => ({
    metadata: { name },
    spec: {
      fixtures: [
        { name: 'board', fixture },
        { name: 'supply', fixture: 'relays' },
      ],
      power: { on: { fixture: 'supply', channel }, off: { fixture: 'supply', channel } },
    },
  });
  const capacity = { ...node.status?.capacity, 'rig.hyperedge.dev/relays': '1' };
  const found = plan({
    rigs: [withRelay('rig-1', 'board-1', 1), withRelay('rig-2', 'board-2', 2)],
    nodes: [{ ...node, status: { capacity } }],
    claims: [claim('a', 'ann', 0), claim('b', 'bob', 1, { spec: { rigName: 'rig-2' } })],
  });
  assert.deepEqual(phases(found), { a: 'Granted 0', b: 'Granted 0' });
});

test('grants any free rig with matching labels, and reports the best position over the queues of these rigs', () => {
  const labels = { board: 'x' };
  const any = (name: string, user: string, second: number) =>
    claim(name, user, second, { spec: { selector: { matchLabels: labels } } });
  const found = plan({
    rigs: [rig('rig-1', 'board-1', labels), rig('rig-2', 'board-2', labels)],
    claims: [any('a', 'ann', 0), any('b', 'bob', 1), any('c', 'cat', 2)],
  });
  assert.deepEqual(phases(found), { a: 'Granted 0', b: 'Granted 0', c: 'Queued 1' });
  assert.deepEqual([found.claims.get('lab/a')?.rig, found.claims.get('lab/b')?.rig], ['rig-1', 'rig-2']);
});

test('grants a rig only after a ResourceClaim for its fixture is released', () => {
  const allocated = (pool: string, device: string, more: object = {}): ResourceClaim => ({
    metadata: { name: 'dra', namespace: 'lab' },
    status: { allocation: { devices: { results: [{ driver: 'rig.hyperedge.dev', pool, device, ...more }] } } },
  });
  const claims = [claim('a', 'u', 0)];
  const waiting = plan({ claims, deviceClaims: [allocated('n1', 'board-1')] });
  assert.deepEqual(phases(waiting), { a: 'Queued 1' });
  assert.match(
    waiting.claims.get('lab/a')?.conditions?.[0]?.message ?? '',
    /place 1 in the queue of rig rig-1; fixture board-1 is allocated to ResourceClaim lab\/dra/,
  );
  for (const other of [
    allocated('n2', 'board-1'),
    allocated('n1', 'board-2'),
    allocated('n1', 'board-1', { adminAccess: true }),
    allocated('n1', 'board-1', { driver: 'gpu.example.com' }),
    {},
  ])
    assert.deepEqual(phases(plan({ claims, deviceClaims: [other] })), { a: 'Granted 0' });
});
