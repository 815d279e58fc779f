import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Pod, PodSpec } from '../../src/api/generated/core/v1.ts';
import { resources } from '../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from '../controllers/harness.ts';

let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane({ kubelets: false });
});
after(() => plane.stop());

const namespace = 'default';
const pods = () => plane.of(resources.pods);

async function create(name: string, cpu: string, spec: Partial<PodSpec> = {}): Promise<Pod> {
  return pods().create({
    metadata: { name, namespace },
    spec: { containers: [{ name: 'c', image: 'i', resources: { requests: { cpu } } }], ...spec },
  });
}
const scheduled = (name: string) =>
  eventually(async () => {
    const pod = await pods().get(name, namespace);
    return (pod.spec?.nodeName ?? '') !== '' && pod;
  }, `${name} on a node`);
const conditionOf = (pod: Pod) => pod.status?.conditions?.find((condition) => condition.type === 'PodScheduled');
const unschedulable = (name: string, pattern: RegExp) =>
  eventually(async () => {
    const pod = await pods().get(name, namespace);
    return conditionOf(pod)?.reason === 'Unschedulable' && pattern.test(conditionOf(pod)?.message ?? '') && pod;
  }, `${name} unschedulable as ${pattern}`);
const remove = (name: string) => pods().delete(name, namespace, { gracePeriodSeconds: 0 });

test('binds a pod created before the first node as soon as a node exists', async () => {
  await create('early', '1');
  const waiting = await unschedulable('early', /^no nodes available to schedule pods/);
  assert.equal(conditionOf(waiting)?.status, 'False');
  await plane.addNode('n1');
  const pod = await scheduled('early');
  assert.equal(pod.spec?.nodeName, 'n1');
  assert.equal(conditionOf(pod)?.status, 'True');
});

test('sets the condition and event of an unschedulable pod, and uses freed resources immediately', async () => {
  await create('big', '3500m');
  const message =
    '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.';
  const waiting = await unschedulable('big', /Insufficient cpu/);
  assert.equal(conditionOf(waiting)?.message, message);
  await eventually(async () => {
    const events = (await plane.of(resources.events).list({ namespace })).items;
    return events.some((event) => event.reason === 'FailedScheduling' && event.message === message);
  }, 'the event');
  await remove('early');
  await scheduled('big');
  await eventually(async () => {
    const events = (await plane.of(resources.events).list({ namespace })).items;
    return events.some((event) => event.message === 'Successfully assigned default/big to n1');
  }, 'the event of success');
  await remove('big');
});

test('preempts a pod of lower priority and schedules the pending pod in its place', async () => {
  for (const [name, value] of [
    ['important', 1000],
    ['unimportant', 1],
  ] as const) {
    await plane.of(resources.priorityClasses).create({ metadata: { name }, value });
  }
  await create('victim', '3', { priorityClassName: 'unimportant', terminationGracePeriodSeconds: 1 });
  await scheduled('victim');
  await create('preemptor', '3', { priorityClassName: 'important' });
  const victim = await eventually(async () => {
    const pod = await pods().get('victim', namespace);
    return pod.metadata?.deletionTimestamp !== undefined && pod;
  }, 'the victim leaving');
  const target = victim.status?.conditions?.find((condition) => condition.type === 'DisruptionTarget');
  assert.equal(target?.reason, 'PreemptionByScheduler');
  assert.equal((target as { observedGeneration?: number }).observedGeneration, 1);
  await eventually(
    async () => (await pods().get('preemptor', namespace)).status?.nominatedNodeName === 'n1',
    'the nomination',
  );
  // The node is nominated: a small pod that would fit beside the victim must not take its resources.
  await remove('victim');
  const winner = await scheduled('preemptor');
  assert.equal(winner.spec?.nodeName, 'n1');
  await remove('preemptor');
});

test('ignores pods of other schedulers, and pods with a scheduling gate until it is removed', async () => {
  await create('foreign', '1', { schedulerName: 'someone-else' });
  await create('gated', '1', { schedulingGates: [{ name: 'example.com/wait' }] });
  await create('plain', '1');
  await scheduled('plain');
  assert.equal((await pods().get('foreign', namespace)).spec?.nodeName, undefined);
  assert.equal((await pods().get('gated', namespace)).spec?.nodeName, undefined);
  await pods().patch('gated', namespace, 'merge', { spec: { schedulingGates: null } });
  await scheduled('gated');
  for (const name of ['foreign', 'gated', 'plain']) await remove(name);
});

test('schedules fifty pods created at once within the capacity of two nodes', async () => {
  await plane.addNode('n2');
  await Promise.all(Array.from({ length: 50 }, (_, index) => create(`many-${index}`, '100m')));
  const placed = await eventually(async () => {
    const items = (await pods().list({ namespace })).items.filter((pod) => pod.metadata?.name?.startsWith('many-'));
    return items.every((pod) => (pod.spec?.nodeName ?? '') !== '') && items;
  }, 'all on nodes');
  const onFirst = placed.filter((pod) => pod.spec?.nodeName === 'n1').length;
  assert.ok(onFirst >= 20 && onFirst <= 30, `spread evenly, not ${onFirst} of 50 on one`);
});

test('binds a pod within milliseconds of its creation', async () => {
  const times: number[] = [];
  for (let index = 0; index < 10; index++) {
    const before = performance.now();
    await create(`quick-${index}`, '10m');
    await scheduled(`quick-${index}`);
    times.push(performance.now() - before);
  }
  times.sort((a, b) => a - b);
  // The measurement includes a poll of 20 ms. The bound detects any wait for a timer.
  assert.ok((times[5] ?? Number.POSITIVE_INFINITY) < 2_000, `median ${times[5]} ms`);
});
