import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { podInfoOf } from '../../../src/api/podspec/scheduling/pod-info.ts';
import { toNodeName } from '../../../src/base/brand.ts';
import { labelSelectorOf } from '../../../src/base/selector.ts';
import type { DisruptionBudget } from '../../../src/scheduler/core/preemption.ts';
import type { Decision } from '../../../src/scheduler/core/schedule.ts';
import { boundTo, cluster, decide, messageOf, node, pod } from './cluster-objects.ts';

const preemptionOf = (decision: Decision) => (decision.kind === 'unschedulable' ? decision.preemption : undefined);
const victims = (decision: Decision): string[] =>
  (preemptionOf(decision)?.victims ?? []).map((victim) => victim.pod.metadata?.name ?? '');
const named = (name: string, on: string, cpu: string, priority: number, more: { startTime?: string } = {}): Pod =>
  pod({ name, node: on, cpu, priority, ...more });

test('preemption evicts as few pods as possible, lowest priority first', () => {
  const made = cluster(
    [node('a', { cpu: '3' })],
    [named('low', 'a', '1', 1), named('mid', 'a', '1', 5), named('high', 'a', '1', 50)],
  );
  assert.deepEqual(victims(decide(pod({ cpu: '1', priority: 10 }), made)), ['low']);
  assert.deepEqual(victims(decide(pod({ cpu: '2', priority: 10 }), made)), ['mid', 'low']);
  assert.deepEqual(victims(decide(pod({ cpu: '3', priority: 10 }), made)), []);
});

test('preemption selects the node whose victims have the lowest priority', () => {
  const made = cluster(
    [node('a', { cpu: '1' }), node('b', { cpu: '1' }), node('c', { cpu: '1' })],
    [named('x', 'a', '1', 5), named('y', 'b', '1', 2), named('z', 'c', '1', 20)],
  );
  assert.equal(preemptionOf(decide(pod({ cpu: '1', priority: 10 }), made))?.node, 'b');
});

test('preemption evicts the pod that started last among pods of equal priority', () => {
  const made = cluster(
    [node('a', { cpu: '1' }), node('b', { cpu: '1' })],
    [
      named('old', 'a', '1', 1, { startTime: '2026-01-01T00:00:00Z' }),
      named('young', 'b', '1', 1, { startTime: '2026-01-02T00:00:00Z' }),
    ],
  );
  assert.equal(preemptionOf(decide(pod({ cpu: '1', priority: 10 }), made))?.node, 'b');
});

test('preemption avoids violating a disruption budget if another node is possible', () => {
  const guarded = pod({ name: 'guarded', node: 'a', cpu: '1', priority: 1, labels: { app: 'db' } });
  const made = cluster([node('a', { cpu: '1' }), node('b', { cpu: '1' })], [guarded, named('free', 'b', '1', 5)]);
  const budget: DisruptionBudget = {
    namespace: 'ns',
    selector: labelSelectorOf({ matchLabels: { app: 'db' } }),
    disruptionsAllowed: 0,
    disrupted: new Set(),
  };
  const wanted = pod({ cpu: '1', priority: 10 });
  assert.equal(preemptionOf(decide(wanted, made))?.node, 'a');
  assert.equal(preemptionOf(decide(wanted, made, { budgets: [budget] }))?.node, 'b');
});

test('does not preempt for a pod with preemptionPolicy Never, or if evictions would not make room', () => {
  const made = cluster([node('a', { cpu: '1' })], [named('x', 'a', '1', 1)]);
  const never = decide(pod({ cpu: '1', priority: 10, spec: { preemptionPolicy: 'Never' } }), made);
  assert.equal(preemptionOf(never), undefined);
  assert.match(messageOf(never), /preemption: not eligible due to preemptionPolicy=Never\.$/);
  assert.equal(preemptionOf(decide(pod({ cpu: '2', priority: 10 }), made)), undefined);
  const elsewhere = decide(pod({ cpu: '1', priority: 10, spec: { nodeSelector: { no: 'where' } } }), made);
  assert.equal(preemptionOf(elsewhere), undefined);
});

test('reserves resources freed by preemption against pods of lower priority, but not of higher priority', () => {
  const made = cluster([node('a', { cpu: '1' })]);
  const preemptor = pod({ cpu: '1', priority: 10 });
  made.nominate(podInfoOf(preemptor), toNodeName('a'));
  assert.match(messageOf(decide(pod({ cpu: '1', priority: 5 }), made)), /Insufficient cpu/);
  assert.equal(boundTo(decide(pod({ cpu: '1', priority: 50 }), made)), 'a');
  assert.equal(boundTo(decide(preemptor, made)), 'a');
});

test('does not preempt again while the victims of the first preemption terminate', () => {
  const running = named('x', 'a', '1', 1);
  const victim: Pod = {
    ...running,
    metadata: { ...running.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
    status: { conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }] },
  };
  const made = cluster([node('a', { cpu: '1' })], [victim]);
  const preemptor = pod({ cpu: '1', priority: 10 });
  made.nominate(podInfoOf(preemptor), toNodeName('a'));
  const decision = decide(preemptor, made);
  assert.equal(preemptionOf(decision), undefined);
  assert.match(messageOf(decision), /terminating pod on the nominated node/);
});

test('preemption clears nominations of pods with lower priority for the same node', () => {
  const made = cluster([node('a', { cpu: '1' })], [named('x', 'a', '1', 1)]);
  const weaker = podInfoOf(pod({ cpu: '1', priority: 5 }));
  made.nominate(weaker, toNodeName('a'));
  const plan = preemptionOf(decide(pod({ cpu: '1', priority: 10 }), made));
  assert.deepEqual(
    plan?.displaced.map((each) => each.uid),
    [weaker.uid],
  );
});
