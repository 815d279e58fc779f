import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Deployment } from '../../../src/api/generated/apps/v1.ts';
import type { Pod, PodTemplateSpec } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { run } from '../../apiserver/harness.ts';
import { type ControlPlane, eventually, startControlPlane } from '../harness.ts';

let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane();
  await plane.addNode('n1');
  await plane.addNode('n2');
});
after(() => plane.stop());

const namespace = 'default';
const template = (app: string, image = 'v1'): PodTemplateSpec => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: 'c', image }], terminationGracePeriodSeconds: 1 },
});
const deployment = (
  name: string,
  replicas: number,
  more: Partial<NonNullable<Deployment['spec']>> = {},
): Deployment => ({
  metadata: { name, namespace },
  spec: { replicas, selector: { matchLabels: { app: name } }, template: template(name), ...more },
});
const podsOf = async (app: string): Promise<Pod[]> =>
  (await plane.of(resources.pods).list({ namespace, labelSelector: `app=${app}` })).items.filter(
    (pod) => pod.metadata?.deletionTimestamp === undefined,
  );
const kubectl = (...args: string[]) => run('kubectl', ['--kubeconfig', plane.api.kubeconfig, ...args]);
const rolledOut = async (name: string): Promise<void> => {
  const status = await kubectl('rollout', 'status', `deployment/${name}`, '--timeout=10s');
  assert.equal(status.code, 0, status.stderr + status.stdout);
};

test('supports kubectl roll-out, restart and undo', async () => {
  const deployments = plane.of(resources.deployments);
  await deployments.create(deployment('web', 3));
  await rolledOut('web');
  await deployments.patch('web', namespace, 'strategic', {
    spec: { template: { spec: { containers: [{ name: 'c', image: 'v2' }] } } },
  });
  await rolledOut('web');
  assert.deepEqual([...new Set((await podsOf('web')).map((pod) => pod.spec?.containers[0]?.image))], ['v2']);
  const undo = await kubectl('rollout', 'undo', 'deployment/web');
  assert.equal(undo.code, 0, undo.stderr);
  await rolledOut('web');
  await eventually(async () => (await podsOf('web')).every((pod) => pod.spec?.containers[0]?.image === 'v1'), 'v1');
  assert.equal((await kubectl('rollout', 'restart', 'deployment/web')).code, 0);
  await rolledOut('web');
  const history = await kubectl('rollout', 'history', 'deployment/web');
  assert.match(history.stdout, /^2\s/m);
  assert.match(history.stdout, /^3\s/m);
  assert.match(history.stdout, /^4\s/m);
  const sets = (await plane.of(resources.replicaSets).list({ namespace, labelSelector: 'app=web' })).items;
  assert.equal(sets.filter((set) => (set.spec?.replicas ?? 0) > 0).length, 1);
  const events = (await plane.of(resources.events).list({ namespace })).items;
  assert.ok(events.some((event) => event.reason === 'ScalingReplicaSet' && event.involvedObject.name === 'web'));
  const sources = new Set(events.map((event) => `${event.involvedObject.kind} ${event.source?.component}`));
  assert.ok(sources.has('Deployment deployment-controller'), [...sources].join());
  assert.ok(sources.has('ReplicaSet replicaset-controller'), [...sources].join());
});

test('a write of the revision annotation does not increase the generation of a deployment', async () => {
  await plane.of(resources.deployments).create(deployment('quiet', 1));
  await rolledOut('quiet');
  const made = await plane.of(resources.deployments).get('quiet', namespace);
  assert.equal(made.metadata?.annotations?.['deployment.kubernetes.io/revision'], '1');
  assert.equal(made.metadata?.generation, 1);
});

test('keeps the old pods of a roll-out that cannot succeed, and reports its timeout', async () => {
  const deployments = plane.of(resources.deployments);
  await deployments.create(deployment('stuck', 2, { progressDeadlineSeconds: 1 }));
  await rolledOut('stuck');
  await deployments.patch('stuck', namespace, 'strategic', {
    spec: { template: { spec: { containers: [{ name: 'c', image: 'broken' }] } } },
  });
  const status = await kubectl('rollout', 'status', 'deployment/stuck', '--timeout=10s');
  assert.equal(status.code, 1);
  assert.match(status.stderr, /exceeded its progress deadline/);
  const old = (await podsOf('stuck')).filter((pod) => pod.spec?.containers[0]?.image === 'v1');
  assert.equal(old.length, 2);
});

test('Recreate terminates all old pods before the first new pod starts', async () => {
  const deployments = plane.of(resources.deployments);
  await deployments.create(deployment('rec', 2, { strategy: { type: 'Recreate' } }));
  await rolledOut('rec');
  await deployments.patch('rec', namespace, 'strategic', {
    spec: { template: { spec: { containers: [{ name: 'c', image: 'v2' }] } } },
  });
  await rolledOut('rec');
  await eventually(async () => (await podsOf('rec')).every((pod) => pod.spec?.containers[0]?.image === 'v2'), 'v2');
});

test('replaces a deleted pod, adopts a pod without a controller, and releases a pod with other labels', async () => {
  await plane.of(resources.replicaSets).create({
    metadata: { name: 'set', namespace },
    spec: { replicas: 2, selector: { matchLabels: { app: 'set' } }, template: template('set') },
  });
  const [first, second] = await eventually(async () => {
    const pods = await podsOf('set');
    return pods.length === 2 && pods;
  }, 'two pods');
  await plane.of(resources.pods).delete(first?.metadata?.name ?? '', namespace);
  await eventually(async () => {
    const names = (await podsOf('set')).map((pod) => pod.metadata?.name);
    return names.length === 2 && !names.includes(first?.metadata?.name ?? '');
  }, 'a replacement');
  await plane.of(resources.pods).patch(second?.metadata?.name ?? '', namespace, 'merge', {
    metadata: { labels: { app: 'free' } },
  });
  await eventually(async () => (await podsOf('set')).length === 2, 'a second replacement');
  const free = await eventually(async () => {
    const pod = await plane.of(resources.pods).get(second?.metadata?.name ?? '', namespace);
    return (pod.metadata?.ownerReferences ?? []).length === 0 && pod;
  }, 'the release');
  await plane.of(resources.pods).patch(free.metadata?.name ?? '', namespace, 'merge', {
    metadata: { labels: { app: 'set' } },
  });
  await eventually(async () => {
    const pods = await podsOf('set');
    return pods.length === 2 && pods.every((pod) => pod.metadata?.ownerReferences?.[0]?.kind === 'ReplicaSet');
  }, 'the adoption, and the surplus pod gone');
});

test('scales a replication controller through its scale sub-resource', async () => {
  await plane.of(resources.replicationControllers).create({
    metadata: { name: 'rc', namespace },
    spec: { replicas: 1, selector: { app: 'rc' }, template: template('rc') },
  });
  await eventually(async () => (await podsOf('rc')).length === 1, 'one pod');
  const scaled = await kubectl('scale', 'rc/rc', '--replicas=3');
  assert.equal(scaled.code, 0, scaled.stderr);
  await eventually(async () => {
    const status = (await plane.of(resources.replicationControllers).get('rc', namespace)).status;
    return status?.availableReplicas === 3 && status.replicas === 3;
  }, 'three available');
});

test('runs a daemon set on every node including new nodes, and rolls out updates with history', async () => {
  await plane.of(resources.daemonSets).create({
    metadata: { name: 'agent', namespace },
    spec: { selector: { matchLabels: { app: 'agent' } }, template: template('agent') },
  });
  const nodesOf = async (): Promise<string[]> => (await podsOf('agent')).map((pod) => pod.spec?.nodeName ?? '').sort();
  await eventually(async () => (await nodesOf()).join() === 'n1,n2', 'a pod on each node');
  await plane.addNode('n3');
  await eventually(async () => (await nodesOf()).join() === 'n1,n2,n3', 'a pod on the new node');
  await plane.of(resources.daemonSets).patch('agent', namespace, 'strategic', {
    spec: { template: { spec: { containers: [{ name: 'c', image: 'v2' }] } } },
  });
  const status = await kubectl('rollout', 'status', 'daemonset/agent', '--timeout=10s');
  assert.equal(status.code, 0, status.stderr);
  await eventually(async () => (await podsOf('agent')).every((pod) => pod.spec?.containers[0]?.image === 'v2'), 'v2');
  const undo = await kubectl('rollout', 'undo', 'daemonset/agent');
  assert.equal(undo.code, 0, undo.stderr);
  await eventually(async () => (await podsOf('agent')).every((pod) => pod.spec?.containers[0]?.image === 'v1'), 'v1');
  const revisions = (await plane.of(resources.controllerRevisions).list({ namespace })).items;
  assert.deepEqual(revisions.map((revision) => revision.revision).sort(), [2, 3]);
});
