import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lease } from '../../../src/api/generated/coordination/v1.ts';
import type { Pod, Taint, Toleration } from '../../../src/api/generated/core/v1.ts';
import { toNodeName } from '../../../src/base/brand.ts';
import { planPodGc, unknownNodes } from '../../../src/controllers/garbage-collection/pods/plan.ts';
import { CidrPool } from '../../../src/controllers/nodes/node-ipam/plan.ts';
import {
  heartbeatOverdueInMs,
  isHeartbeatOverdue,
  observeHealth,
  planUnknownConditions,
} from '../../../src/controllers/nodes/node-lifecycle/health.ts';
import { planTaints } from '../../../src/controllers/nodes/node-lifecycle/taints.ts';
import { mayEvict, zoneStates } from '../../../src/controllers/nodes/node-lifecycle/zones.ts';
import { planEviction } from '../../../src/controllers/nodes/taint-eviction/plan.ts';
import { ttlSeconds } from '../../../src/controllers/nodes/ttl/plan.ts';
import { NOW, node, pod, seeded } from '../objects.ts';

const times = { gracePeriodMs: 40_000, startupGracePeriodMs: 60_000 };
const lease = (renewTime: string): Lease => ({ spec: { renewTime } });

test('uses the monotonic clock to detect that lease or status of a node stopped changing', () => {
  const subject = node('n', { ready: 'True' });
  let health = observeHealth(undefined, subject, lease('1970-01-01T00:00:00Z'), 0);
  assert.equal(isHeartbeatOverdue(health, times, 40_000), false);
  assert.equal(isHeartbeatOverdue(health, times, 40_001), true);
  health = observeHealth(health, subject, lease('1970-01-01T00:00:10Z'), 30_000);
  assert.equal(isHeartbeatOverdue(health, times, 70_000), false);
  assert.equal(heartbeatOverdueInMs(health, times, 30_000), 40_001);
  const fresher = node('n', { ready: 'True' });
  for (const condition of fresher.status?.conditions ?? []) condition.lastHeartbeatTime = 'later';
  assert.equal(observeHealth(health, fresher, lease('1970-01-01T00:00:10Z'), 69_000).reportedAtMs, 69_000);
});

test('uses the longer grace period for a node that never reported', () => {
  const health = observeHealth(undefined, node('n'), undefined, 0);
  assert.equal(isHeartbeatOverdue(health, times, 59_000), false);
  assert.equal(isHeartbeatOverdue(health, times, 61_000), true);
});

test('ignores conditions written by the controller itself', () => {
  const subject = node('n', { ready: 'True' });
  const health = observeHealth(undefined, subject, undefined, 0);
  const conditions = planUnknownConditions(subject, NOW);
  assert.ok(conditions?.every((condition) => condition.status === 'Unknown'));
  const marked = { ...subject, status: { ...subject.status, conditions: conditions ?? [] } };
  assert.equal(observeHealth(health, marked, undefined, 41_000).reportedAtMs, 0);
  assert.equal(planUnknownConditions(marked, NOW), undefined);
});

const keys = (taints: readonly Taint[] | undefined): string[] | undefined =>
  taints?.map((taint) => `${taint.key.replace('node.kubernetes.io/', '')}:${taint.effect}`).sort();
const tainted = (...taints: Taint[]) => ({ ...node('n', { ready: 'True' }), spec: { taints } });

test('derives taints from conditions and keeps taints of other components', () => {
  const plan = (subject: ReturnType<typeof node>, may = true) =>
    keys(planTaints({ node: subject, mayEvict: may, nowMs: NOW }));
  assert.equal(plan(node('n', { ready: 'True' })), undefined);
  assert.deepEqual(plan(node('n', { ready: 'Unknown' })), ['unreachable:NoExecute', 'unreachable:NoSchedule']);
  assert.deepEqual(plan(node('n', { ready: 'False' })), ['not-ready:NoExecute', 'not-ready:NoSchedule']);
  assert.deepEqual(plan(node('n', { ready: 'Unknown' }), false), ['unreachable:NoSchedule']);
  assert.deepEqual(plan(node('n')), ['not-ready:NoSchedule']);
  const own: Taint = { key: 'mine', effect: 'NoExecute' };
  const stale: Taint = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' };
  assert.deepEqual(plan(tainted(own, stale)), ['mine:NoExecute']);
  assert.equal(plan(tainted(own)), undefined);
  const cordoned = { ...node('n', { ready: 'True' }), spec: { unschedulable: true } };
  assert.deepEqual(plan(cordoned), ['unschedulable:NoSchedule']);
});

test('stops evictions if no node reports or most nodes of a zone fail, and evicts from a single failed zone', () => {
  const health = (zone: string, isHealthy: boolean) => ({
    node: node('n', { labels: { 'topology.kubernetes.io/zone': zone } }),
    isHealthy,
  });
  const silent = zoneStates([health('a', false), health('b', false)]);
  assert.equal(mayEvict('/a', silent), false);
  const one = zoneStates([health('a', false), health('b', true)]);
  assert.equal(mayEvict('/a', one), true);
  const partial = zoneStates([
    health('a', false),
    health('a', false),
    health('a', false),
    health('a', true),
    health('b', true),
  ]);
  assert.equal(mayEvict('/a', partial), false);
  assert.equal(mayEvict('/b', partial), true);
});

test('evicts pods after their shortest toleration', () => {
  const subject = tainted({ key: 'k', effect: 'NoExecute' }, { key: 'other', effect: 'NoSchedule' });
  const rules = (heldMs: number) => ({
    tolerates: (toleration: Toleration, taint: Taint) => toleration.key === taint.key,
    heldForMs: () => heldMs,
  });
  const with_ = (...tolerations: Toleration[]): Pod => ({ ...pod(), spec: { containers: [], tolerations } });
  assert.deepEqual(planEviction(with_(), subject, rules(0)), { kind: 'leave', inMs: 0 });
  assert.deepEqual(planEviction(with_({ key: 'k' }), subject, rules(0)), { kind: 'stay' });
  const limited = with_({ key: 'k', tolerationSeconds: 300 }, { key: 'k', tolerationSeconds: 60 });
  assert.deepEqual(planEviction(limited, subject, rules(10_000)), { kind: 'leave', inMs: 50_000 });
  assert.deepEqual(planEviction(limited, subject, rules(90_000)), { kind: 'leave', inMs: 0 });
  // The longest duration as the client parses it.
  const longest = (2n ** 63n - 1n) as unknown as number;
  assert.deepEqual(planEviction(with_({ key: 'k', tolerationSeconds: longest }), subject, rules(0)), {
    kind: 'leave',
    inMs: 2 ** 63 * 1000,
  });
  assert.deepEqual(planEviction(pod({ deleting: true }), subject, rules(0)), { kind: 'stay' });
});

test('allocates distinct pod networks, releases them, and returns the same network for a repeated request', () => {
  const pool = new CidrPool('10.128.0.0/14', 23);
  assert.equal(pool.capacity, 512);
  pool.occupy('10.128.0.0/23', toNodeName('a'));
  assert.equal(pool.allocate(toNodeName('b')), '10.128.2.0/23');
  assert.equal(pool.allocate(toNodeName('b')), '10.128.2.0/23');
  pool.release(toNodeName('b'));
  assert.equal(pool.allocate(toNodeName('c')), '10.128.4.0/23');
  const small = new CidrPool('10.0.0.0/30', 30);
  assert.equal(small.allocate(toNodeName('a')), '10.0.0.0/30');
  assert.equal(small.allocate(toNodeName('b')), undefined);
  small.release(toNodeName('a'));
  assert.equal(small.allocate(toNodeName('b')), '10.0.0.0/30');
  for (const broken of ['10.0.0.0', '10.0.0.256/8', '10.0.0.0/33', 'x']) assert.throws(() => new CidrPool(broken, 30));
  assert.throws(() => new CidrPool('10.0.0.0/16', 8));
});

test('pod networks of different nodes never overlap', () => {
  const random = seeded(5);
  const pool = new CidrPool('10.0.0.0/20', 24);
  const held = new Map<string, string>();
  for (let step = 0; step < 2_000; step++) {
    const name = `n${Math.floor(random() * 24)}`;
    if (random() < 0.4) {
      pool.release(toNodeName(name));
      held.delete(name);
    } else {
      const cidr = pool.allocate(toNodeName(name));
      if (cidr === undefined) assert.equal(held.size, 16);
      else held.set(name, cidr);
    }
    assert.equal(new Set(held.values()).size, held.size);
  }
});

test('deletes pods that no other controller deletes', () => {
  const orphan = pod({ node: 'gone' });
  const unscheduled = pod({ deleting: true });
  const fine = pod({ node: 'here' });
  const ended = [1, 2, 3].map((age) => pod({ node: 'here', phase: 'Succeeded', createdMs: NOW - age * 1_000 }));
  const pods = [orphan, unscheduled, fine, ...ended];
  const nodes = new Map([['here', node('here', { ready: 'True' })]]);
  assert.deepEqual([...unknownNodes(pods, nodes)], ['gone']);
  const snapshot = { pods, nodes, missingNodes: new Set<string>(), terminatedThreshold: 2 };
  const byReason = (removals: ReturnType<typeof planPodGc>) =>
    removals.map((each) => [each.pod, each.reason, each.markFailed]);
  assert.deepEqual(byReason(planPodGc(snapshot)), [
    [ended[2], 'Terminated', false],
    [unscheduled, 'Unscheduled', true],
  ]);
  const missing = planPodGc({ ...snapshot, missingNodes: new Set(['gone']), terminatedThreshold: 0 });
  assert.deepEqual(byReason(missing), [
    [orphan, 'Orphaned', true],
    [unscheduled, 'Unscheduled', true],
  ]);
});

test('increases the TTL annotation of nodes with the cluster size, with hysteresis at the thresholds', () => {
  assert.equal(ttlSeconds(1, 0), 0);
  assert.equal(ttlSeconds(101, 0), 15);
  assert.equal(ttlSeconds(95, 15), 15);
  assert.equal(ttlSeconds(89, 15), 0);
  assert.equal(ttlSeconds(5_000, 0), 300);
});
