/** Plans of machine sets and machine health checks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../../../src/api/generated/core/v1.ts';
import { planHealthCheck } from '../../../../src/openshift/machines/core/health-check.ts';
import { inOrderOfDeletion, planMachineSet } from '../../../../src/openshift/machines/core/machine-set.ts';
import type {
  Machine,
  MachineHealthCheck,
  MachineSet,
} from '../../../../src/openshift/machines/kinds/machine-types.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const at = (ms: number): string => new Date(NOW + ms).toISOString();
const context = { nowMs: NOW, random: () => 0.5 };
const owner = { apiVersion: 'machine.openshift.io/v1beta1', kind: 'MachineSet', name: 's', uid: 's', controller: true };

const setOf = (replicas: number): MachineSet => ({
  metadata: { name: 's', namespace: 'x', uid: 's', generation: 3 },
  spec: {
    replicas,
    selector: { matchLabels: { set: 's' } },
    template: { metadata: { labels: { set: 's', tier: 'a' } } },
  },
});

function machineOf(
  name: string,
  change: {
    ageMs?: number;
    node?: string;
    owned?: boolean;
    marked?: boolean;
    failed?: boolean;
    deleted?: boolean;
  } = {},
): Machine {
  const { ageMs = 0, node = name, owned = true, marked = false, failed = false, deleted = false } = change;
  return {
    metadata: {
      name,
      namespace: 'x',
      uid: name,
      creationTimestamp: at(-ageMs),
      labels: { set: 's' },
      ...(owned ? { ownerReferences: [owner] } : {}),
      ...(marked ? { annotations: { 'machine.openshift.io/delete-machine': 'yes' } } : {}),
      ...(deleted ? { deletionTimestamp: at(0) } : {}),
    },
    status: {
      phase: failed ? 'Failed' : 'Running',
      ...(failed ? { errorReason: 'CreateError' } : {}),
      ...(node === '' ? {} : { nodeRef: { name: node } }),
    },
  };
}

const nodeOf = (status: string, sinceMs = 3_600_000): Node => ({
  status: { conditions: [{ type: 'Ready', status, lastTransitionTime: at(-sinceMs) }] },
});

test('a MachineSet adopts matching Machines, creates missing ones and counts them', () => {
  const machines = [machineOf('a'), machineOf('b', { owned: false }), machineOf('c', { deleted: true })];
  const plan = planMachineSet(
    { set: setOf(4), machines, node: (name) => nodeOf(name === 'a' ? 'True' : 'False') },
    context,
  );
  assert.deepEqual(
    plan.adopt.map(({ metadata }) => metadata?.name),
    ['b'],
  );
  assert.equal(plan.create, 2);
  assert.deepEqual(plan.status, {
    replicas: 3,
    fullyLabeledReplicas: 0,
    readyReplicas: 1,
    availableReplicas: 1,
    observedGeneration: 3,
  });
  const foreign = { ...machineOf('d'), metadata: { ...machineOf('d').metadata, labels: { set: 'other' } } };
  const other = planMachineSet({ set: setOf(0), machines: [foreign], node: () => undefined }, context);
  assert.deepEqual([other.release.length, other.delete.length], [1, 0]);
});

test('a MachineSet that is being deleted creates and deletes no Machine', () => {
  const set = { ...setOf(3), metadata: { ...setOf(3).metadata, deletionTimestamp: at(0) } };
  const plan = planMachineSet({ set, machines: [machineOf('a', { owned: false })], node: () => undefined }, context);
  assert.deepEqual([plan.create, plan.delete, plan.adopt], [0, [], []]);
});

test('a MachineSet counts a Node as available after minReadySeconds', () => {
  const set = { ...setOf(1), spec: { ...setOf(1).spec, minReadySeconds: 60 } };
  const plan = planMachineSet({ set, machines: [machineOf('a')], node: () => nodeOf('True', 20_000) }, context);
  assert.deepEqual([plan.status.readyReplicas, plan.status.availableReplicas], [1, 0]);
  assert.equal(plan.nextMs, NOW + 40_000);
});

test('a MachineSet deletes annotated Machines first, then failed ones, then those without a Node, then by policy', () => {
  const machines = [
    machineOf('old', { ageMs: 9000 }),
    machineOf('new', { ageMs: 1000 }),
    machineOf('nodeless', { node: '', ageMs: 5000 }),
    machineOf('failed', { failed: true, ageMs: 5000 }),
    machineOf('marked', { marked: true, ageMs: 5000 }),
  ];
  const order = (policy: string) => inOrderOfDeletion(machines, policy, context).map(({ metadata }) => metadata?.name);
  assert.deepEqual(order('Oldest'), ['marked', 'failed', 'nodeless', 'old', 'new']);
  assert.deepEqual(order('Newest'), ['marked', 'failed', 'nodeless', 'new', 'old']);
  assert.deepEqual(order('Random').slice(0, 3), ['marked', 'failed', 'nodeless']);
  const plan = planMachineSet({ set: setOf(3), machines, node: () => undefined }, context);
  assert.deepEqual(
    plan.delete.map(({ metadata }) => metadata?.name),
    ['marked', 'failed'],
  );
});

const checkOf = (maxUnhealthy: number | string): MachineHealthCheck => ({
  spec: {
    selector: { matchLabels: { set: 's' } },
    maxUnhealthy,
    nodeStartupTimeout: '10m',
    unhealthyConditions: [{ type: 'Ready', status: 'False', timeout: '5m' }],
  },
});

test('remediates a Machine when the time-out of its unhealthy Node expires, and schedules the next check', () => {
  const machines = [machineOf('good'), machineOf('bad'), machineOf('soon')];
  const nodes: Record<string, Node> = {
    good: nodeOf('True'),
    bad: nodeOf('False', 301_000),
    soon: nodeOf('False', 100_000),
  };
  const plan = planHealthCheck({ check: checkOf('100%'), machines, node: (name) => nodes[name] }, context);
  assert.deepEqual(
    plan.remediate.map(({ machine }) => machine.metadata?.name),
    ['bad'],
  );
  assert.equal(plan.nextMs, NOW + 200_000);
  const { expectedMachines, currentHealthy, remediationsAllowed, conditions } = plan.status;
  assert.deepEqual([expectedMachines, currentHealthy, remediationsAllowed], [3, 1, 1]);
  assert.equal(conditions?.[0]?.status, 'True');
});

test('remediates no Machine if more than maxUnhealthy are unhealthy', () => {
  const machines = ['a', 'b', 'c'].map((name) => machineOf(name));
  const node = (name: string) => nodeOf(name === 'a' ? 'True' : 'False');
  for (const [most, remediated] of [
    [2, 2],
    [1, 0],
    ['40%', 0],
    ['67%', 2],
    [0, 0],
  ] as const) {
    const plan = planHealthCheck({ check: checkOf(most), machines, node }, context);
    assert.equal(plan.remediate.length, remediated, String(most));
    if (remediated === 0) assert.equal(plan.status.conditions?.[0]?.reason, 'TooManyUnhealthy');
  }
});

test('remediates Machines that failed or lack a Node, except masters and Machines without a MachineSet', () => {
  const startup = (ms: number): Machine => {
    const machine = machineOf('x', { node: '' });
    return { ...machine, status: { ...machine.status, lastUpdated: at(-ms) } };
  };
  const why = (machine: Machine, node?: Node) => {
    const { remediate, skipped } = planHealthCheck(
      { check: checkOf('100%'), machines: [machine], node: () => node },
      context,
    );
    return remediate[0]?.why ?? `skipped ${skipped[0]?.why}`;
  };
  assert.equal(why(startup(601_000)), 'no node after 10m');
  assert.equal(why(startup(599_000)), 'skipped undefined');
  assert.equal(why(machineOf('x')), 'node x is deleted');
  assert.match(why(machineOf('x', { failed: true }), nodeOf('True')), /^machine has failed/);
  assert.match(why(machineOf('x', { owned: false })), /^skipped machine has no machineset owner/);
  const master = { ...machineOf('x'), spec: { providerSpec: { value: { roles: ['master', 'node'] } } } };
  assert.match(why(master), /^skipped machine is a control plane machine/);
  assert.equal(why(machineOf('x', { deleted: true })), 'skipped undefined');
});
