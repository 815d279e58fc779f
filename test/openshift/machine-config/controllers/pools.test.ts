/** Pools, rendering, roll-out and drains on a real API server. The daemons of hosts are simulated. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Node } from '../../../../src/api/generated/core/v1.ts';
import { resources } from '../../../../src/api/resources.ts';
import {
  CONFIG_REASON,
  CONFIG_STATE,
  CURRENT_CONFIG,
  DESIRED_CONFIG,
  DESIRED_DRAIN,
  LAST_APPLIED_DRAIN,
  type MachineConfig,
  type MachineConfigPool,
  ROLE_LABEL,
  TOPOLOGY,
} from '../../../../src/openshift/machine-config/kinds/machine-config-types.ts';
import { type ControlPlane, startControlPlane, eventually as within } from '../../../controllers/harness.ts';

/** Longer timeout, because many objects are created at start and the machine may be busy. */
const eventually = <T>(check: () => Promise<T | undefined | false>, what: string): Promise<T> =>
  within(check, what, 30_000);

const MASTER = 'node-role.kubernetes.io/master';
let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane();
});
after(() => plane.stop());

const configs = () => plane.of(resources.machineConfigs);
const pools = () => plane.of(resources.machineConfigPools);
const nodes = () => plane.of(resources.nodes);
const annotation = ({ metadata }: Node, name: string): string => metadata?.annotations?.[name] ?? '';
const condition = ({ status }: MachineConfigPool, type: string) =>
  status?.conditions?.find((each) => each.type === type);

const annotate = (name: string, annotations: Record<string, string>): Promise<Node> =>
  nodes().patch(name, undefined, 'merge', { metadata: { annotations } });

/** Simulates a host that applies or rejects its desired configuration. */
async function settle(name: string, state = 'Done', reason = ''): Promise<string> {
  const desired = annotation(await nodes().get(name), DESIRED_CONFIG);
  const current = state === 'Done' ? { [CURRENT_CONFIG]: desired } : {};
  await annotate(name, { ...current, [CONFIG_STATE]: state, [CONFIG_REASON]: reason });
  return desired;
}

async function addHost(name: string, labels: Record<string, string> = {}): Promise<void> {
  await plane.addNode(name, (node) => {
    node.metadata = { ...node.metadata, labels: { ...node.metadata?.labels, ...labels } };
  });
  await eventually(async () => annotation(await nodes().get(name), DESIRED_CONFIG) !== '', 'a first configuration');
  await settle(name);
}

const fragment = (name: string, role: string, path: string, text: string): MachineConfig => ({
  metadata: { name, labels: { [ROLE_LABEL]: role } },
  spec: {
    config: {
      ignition: { version: '3.2.0' },
      storage: { files: [{ path, contents: { source: `data:,${text}` } }] },
    },
  },
});

const targetOf = async (pool: string): Promise<string> => (await pools().get(pool)).spec?.configuration?.name ?? '';

const newTarget = (pool: string, old: string): Promise<string> =>
  eventually(async () => {
    const now = await targetOf(pool);
    return now !== old && now !== '' && now;
  }, `a new configuration of ${pool}`);

const updatedTo = (pool: string, target: string): Promise<MachineConfigPool> =>
  eventually(async () => {
    const found = await pools().get(pool);
    return condition(found, 'Updated')?.status === 'True' && found.status?.configuration?.name === target && found;
  }, `pool ${pool} updated to ${target}`);

const aimedAt = async (target: string): Promise<string[]> =>
  (await nodes().list()).items
    .filter((node) => annotation(node, DESIRED_CONFIG) === target)
    .map(({ metadata }) => metadata?.name ?? '');

test('renders the configs of the default pools master and worker from their base fragments', async () => {
  const master = await newTarget('master', '');
  const worker = await newTarget('worker', '');
  assert.match(master, /^rendered-master-[0-9a-f]{32}$/);
  assert.match(worker, /^rendered-worker-[0-9a-f]{32}$/);
  const rendered = await configs().get(worker);
  assert.equal(rendered.metadata?.ownerReferences?.[0]?.kind, 'MachineConfigPool');
  const pool = await eventually(async () => {
    const found = await pools().get('worker');
    return (
      condition(found, 'RenderDegraded')?.status === 'False' && found.status?.observedGeneration !== undefined && found
    );
  }, 'a status');
  assert.deepEqual(
    pool.spec?.configuration?.source?.map(({ name }) => name),
    ['00-worker'],
  );
  const facts = await plane.of(resources.controllerConfigs).get('machine-config-controller');
  assert.equal(facts.spec?.clusterDNSIP, '172.30.0.10');
  assert.ok(
    facts.status?.conditions?.some(({ type, status }) => type === 'TemplateControllerCompleted' && status === 'True'),
  );
});

test('updates the workers one at a time and counts updated workers in the pool status', async () => {
  const old = await targetOf('worker');
  for (const name of ['w1', 'w2', 'w3']) await addHost(name);
  await updatedTo('worker', old);
  await eventually(async () => (await pools().get('worker')).status?.machineCount === 3, 'three machines');
  await eventually(async () => annotation(await nodes().get('w1'), TOPOLOGY) === 'SingleReplica', 'the topology');
  await configs().create(fragment('50-motd', 'worker', '/etc/motd', 'hello'));
  const target = await newTarget('worker', old);
  await eventually(async () => {
    const { spec } = await pools().get('worker');
    return spec?.configuration?.source?.map(({ name }) => name).join() === '00-worker,50-motd';
  }, 'both sources');
  const seen: string[] = [];
  while (seen.length < 3) {
    const next = await eventually(async () => (await aimedAt(target)).find((name) => !seen.includes(name)), 'a node');
    assert.equal((await aimedAt(target)).length, seen.length + 1, 'one at a time');
    await eventually(async () => condition(await pools().get('worker'), 'Updating')?.status === 'True', 'updating');
    if (seen.length === 0) {
      const other = ['w1', 'w2', 'w3'].find((name) => name !== next) ?? '';
      await eventually(
        async () => (await nodes().get(other)).spec?.taints?.some(({ key }) => key === 'UpdateInProgress'),
        'the taint of a node that waits',
      );
    }
    seen.push(next);
    await settle(next);
  }
  await updatedTo('worker', target);
  await eventually(async () => {
    const pool = await pools().get('worker');
    const { updatedMachineCount, readyMachineCount } = pool.status ?? {};
    return updatedMachineCount === 3 && readyMachineCount === 3 && condition(pool, 'Updating')?.status === 'False';
  }, 'three ready machines');
  await eventually(
    async () => !(await nodes().get('w3')).spec?.taints?.some(({ key }) => key === 'UpdateInProgress'),
    'no taint',
  );
});

test('updates no node of a paused pool, and several nodes at once for a maxUnavailable percentage', async () => {
  const old = await targetOf('worker');
  await pools().patch('worker', undefined, 'merge', { spec: { paused: true, maxUnavailable: '67%' } });
  await configs().create(fragment('51-issue', 'worker', '/etc/issue', 'lab'));
  const target = await newTarget('worker', old);
  const paused = await eventually(async () => {
    const found = await pools().get('worker');
    return condition(found, 'Updated')?.status === 'False' && found;
  }, 'the status of a paused pool');
  assert.equal(condition(paused, 'Updating')?.message, `Pool is paused; will not update to ${target}`);
  assert.deepEqual(await aimedAt(target), []);
  await pools().patch('worker', undefined, 'merge', { spec: { paused: false } });
  await eventually(async () => (await aimedAt(target)).length === 2, 'two of three nodes');
  for (const name of await aimedAt(target)) await settle(name);
  await eventually(async () => (await aimedAt(target)).length === 3, 'the third');
  for (const name of await aimedAt(target)) await settle(name);
  await updatedTo('worker', target);
  await pools().patch('worker', undefined, 'merge', { spec: { maxUnavailable: null } });
});

test('degrades the pool while a MachineConfig contains invalid Ignition', async () => {
  const before = await targetOf('worker');
  const bad = fragment('60-bad', 'worker', '/etc/../etc/x', 'x');
  await configs().create(bad);
  const pool = await eventually(async () => {
    const found = await pools().get('worker');
    return condition(found, 'Degraded')?.status === 'True' && found;
  }, 'a degraded pool');
  assert.match(
    condition(pool, 'RenderDegraded')?.message ?? '',
    /^Failed to render configuration for pool worker: 60-bad: /,
  );
  assert.equal(await targetOf('worker'), before);
  await configs().delete('60-bad');
  await eventually(
    async () => condition(await pools().get('worker'), 'Degraded')?.status === 'False',
    'the pool without it',
  );
});

test('degrades the pool when a host rejects an unsupported config, and returns the host to the next valid config', async () => {
  const old = await targetOf('worker');
  const disks = fragment('61-disks', 'worker', '/etc/disks', 'x');
  await configs().create({
    ...disks,
    spec: { config: { ...disks.spec?.config, storage: { disks: [{ device: '/one' }] } } },
  });
  const target = await newTarget('worker', old);
  const name = await eventually(async () => (await aimedAt(target))[0], 'a node');
  await settle(name, 'Unreconcilable', 'ignition disks section contains changes');
  const pool = await eventually(async () => {
    const found = await pools().get('worker');
    return condition(found, 'NodeDegraded')?.status === 'True' && found;
  }, 'a degraded node');
  assert.equal(pool.status?.degradedMachineCount, 1);
  assert.match(condition(pool, 'NodeDegraded')?.message ?? '', /is reporting: "ignition disks section/);
  assert.equal((await aimedAt(target)).length, 1, 'the failing node holds the place');
  await configs().delete('61-disks');
  assert.equal(await newTarget('worker', target), old);
  await eventually(async () => annotation(await nodes().get(name), DESIRED_CONFIG) === old, 'the old configuration');
  await settle(name);
  await updatedTo('worker', old);
});

test('a custom pool takes precedence over worker, and an empty node selector selects no node', async () => {
  const worker = await targetOf('worker');
  for (const role of ['infra', 'lab']) {
    await pools().create({
      metadata: { name: role, labels: { [`pool/${role}`]: '' } },
      spec: {
        machineConfigSelector: { matchExpressions: [{ key: ROLE_LABEL, operator: 'In', values: ['worker', role] }] },
        nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${role}`]: '' } },
      },
    });
  }
  await pools().create({ metadata: { name: 'all' }, spec: { machineConfigSelector: {}, nodeSelector: {} } });
  await configs().create(fragment('70-infra', 'infra', '/etc/infra', 'x'));
  const infra = await newTarget('infra', '');
  await nodes().patch('w1', undefined, 'merge', { metadata: { labels: { 'node-role.kubernetes.io/infra': '' } } });
  await eventually(async () => {
    const target = await targetOf('infra');
    return annotation(await nodes().get('w1'), DESIRED_CONFIG) === target && target;
  }, 'the configuration of the custom pool');
  assert.notEqual(infra, worker);
  await settle('w1');
  const target = await targetOf('infra');
  await updatedTo('infra', target);
  await eventually(async () => (await pools().get('worker')).status?.machineCount === 2, 'two workers');
  await nodes().patch('w1', undefined, 'merge', { metadata: { labels: { 'node-role.kubernetes.io/lab': '' } } });
  await eventually(async () => (await pools().get('infra')).status?.machineCount === 0, 'no node of two pools');
  const { items } = await plane.of(resources.events).list();
  await eventually(async () => {
    const all = (await plane.of(resources.events).list()).items;
    return all.some(({ reason, message }) => reason === 'MultiplePools' && message?.includes('2 custom roles'));
  }, 'an event about two pools');
  assert.ok(items.length > 0);
  assert.equal(annotation(await nodes().get('w1'), DESIRED_CONFIG), target);
  await nodes().patch('w1', undefined, 'merge', {
    metadata: { labels: { 'node-role.kubernetes.io/lab': null, 'node-role.kubernetes.io/infra': null } },
  });
  await eventually(async () => annotation(await nodes().get('w1'), DESIRED_CONFIG) === worker, 'a worker again');
  await settle('w1');
  assert.equal((await pools().get('all')).spec?.configuration?.name, undefined);
});

test('updates masters one at a time, and no master while another master is not ready', async () => {
  for (const name of ['m1', 'm2', 'm3']) await addHost(name, { [MASTER]: 'true' });
  const old = await targetOf('master');
  await pools().patch('master', undefined, 'merge', { spec: { maxUnavailable: 3 } });
  const ready = (status: string): Promise<Node> =>
    nodes().patch(
      'm3',
      undefined,
      'strategic',
      { status: { conditions: [{ type: 'Ready', status }] } },
      { subresource: 'status' },
    );
  await ready('False');
  await configs().create(fragment('50-master', 'master', '/etc/motd', 'master'));
  const target = await newTarget('master', old);
  await eventually(async () => (await pools().get('master')).status?.unavailableMachineCount === 1, 'm3 unavailable');
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.deepEqual(await aimedAt(target), []);
  await ready('True');
  await eventually(async () => (await aimedAt(target)).length === 1, 'one master');
  assert.equal(annotation(await nodes().get('m1'), TOPOLOGY), 'HighlyAvailable');
  for (let done = 0; done < 3; done++) {
    await eventually(async () => (await aimedAt(target)).length === done + 1, `master ${done + 1}`);
    for (const name of await aimedAt(target)) await settle(name);
  }
  await updatedTo('master', target);
});

test('mastersSchedulable of the Scheduler object determines the labels and taints of masters', async () => {
  await addHost('m-schedulable', { [MASTER]: '' });
  const set = (mastersSchedulable: boolean) =>
    plane.of(resources.schedulers).patch('cluster', undefined, 'merge', { spec: { mastersSchedulable } });
  const found = async (isWorker: boolean, taints: number): Promise<boolean> => {
    const { metadata, spec } = await nodes().get('m-schedulable');
    const own = (spec?.taints ?? []).filter(({ key, effect }) => key === MASTER && effect === 'NoSchedule');
    return (metadata?.labels?.['node-role.kubernetes.io/worker'] === '') === isWorker && own.length === taints;
  };
  await set(true);
  await eventually(() => found(true, 0), 'a master that is a worker');
  await set(false);
  await eventually(() => found(false, 1), 'a tainted master');
  await set(true);
  await eventually(() => found(true, 0), 'a master that is a worker again');
  await nodes().patch('m-schedulable', undefined, 'merge', {
    spec: { taints: [{ key: MASTER, effect: 'NoSchedule' }] },
  });
  await nodes().patch('m-schedulable', undefined, 'merge', { metadata: { labels: { touched: '' } } });
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.equal(await found(true, 1), true);
  await nodes().delete('m-schedulable');
});

test('drains a node on request of its annotation, acknowledges the drain, and uncordons the node afterwards', async () => {
  await plane.of(resources.namespaces).create({ metadata: { name: 'work' } });
  await plane.of(resources.pods).create({
    metadata: { name: 'p', namespace: 'work' },
    spec: { nodeName: 'w2', containers: [{ name: 'c', image: 'app' }] },
  });
  await annotate('w2', { [DESIRED_DRAIN]: 'drain-rendered-worker-1' });
  const drained = await eventually(async () => {
    const node = await nodes().get('w2');
    return annotation(node, LAST_APPLIED_DRAIN) === 'drain-rendered-worker-1' && node;
  }, 'a drained node');
  assert.equal(drained.spec?.unschedulable, true);
  assert.equal((await plane.of(resources.pods).list({ namespace: 'work' })).items.length, 0);
  await annotate('w2', { [DESIRED_DRAIN]: 'uncordon-rendered-worker-1' });
  await eventually(async () => (await nodes().get('w2')).spec?.unschedulable !== true, 'an uncordoned node');
});

test('a PodDisruptionBudget blocks the drain of a node', async () => {
  await plane.of(resources.pods).create({
    metadata: { name: 'held', namespace: 'work', labels: { app: 'held' } },
    spec: { nodeName: 'w2', containers: [{ name: 'c', image: 'app' }] },
  });
  await plane.admin.request('POST', '/apis/policy/v1/namespaces/work/poddisruptionbudgets', {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'held', namespace: 'work' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'held' } } },
  });
  await annotate('w2', { [DESIRED_DRAIN]: 'drain-rendered-worker-2' });
  await eventually(async () => (await nodes().get('w2')).spec?.unschedulable === true, 'a cordoned node');
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.equal((await plane.of(resources.pods).get('held', 'work')).metadata?.deletionTimestamp, undefined);
  assert.equal(annotation(await nodes().get('w2'), LAST_APPLIED_DRAIN), 'uncordon-rendered-worker-1');
});

test('rejects a node whose kubelet is newer than the API server, and reports nodes with an older kubelet', async () => {
  const register = async (name: string, kubeletVersion: string): Promise<void> => {
    const client = await plane.clientAs(`system:node:${name}`, 'system:nodes');
    const nodeInfo = { kubeletVersion } as NonNullable<NonNullable<Node['status']>['nodeInfo']>;
    await client.resource(resources.nodes).create({ metadata: { name }, status: { nodeInfo } });
  };
  await assert.rejects(
    register('newer', 'v1.99.0'),
    /kubelet v1\.99\.0 is newer than API server v1\.36\.\S+; upgrade the masters first/,
  );
  await register('older', 'v1.35.2');
  await register('oldest', 'v1.30.0');
  for (const [name, reason] of [
    ['older', 'KubeletSkewPresent'],
    ['oldest', 'KubeletSkewUnsupported'],
  ]) {
    await eventually(async () => {
      const { items } = await plane.of(resources.events).list();
      return items.some((event) => event.reason === reason && event.involvedObject.name === name);
    }, `${reason} of ${name}`);
  }
});
