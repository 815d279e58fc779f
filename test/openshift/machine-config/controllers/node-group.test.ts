/** Node groups on a real API server: their arguments become KubeletConfigs of pools. The hosts are simulated. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Node } from '../../../../src/api/generated/core/v1.ts';
import { GROUP_BY_POOLS, GROUP_LABEL } from '../../../../src/api/kinds/nodes/nodes/own-labels.ts';
import { isApiError } from '../../../../src/api/meta/status.ts';
import { resources } from '../../../../src/api/resources.ts';
import {
  CONFIG_STATE,
  CURRENT_CONFIG,
  DESIRED_CONFIG,
  ROLE_LABEL,
} from '../../../../src/openshift/machine-config/kinds/machine-config-types.ts';
import { type ControlPlane, startControlPlane, eventually as within } from '../../../controllers/harness.ts';

/** Longer timeout, because many objects are created at start and the machine may be busy. */
const eventually = <T>(check: () => Promise<T | undefined | false>, what: string): Promise<T> =>
  within(check, what, 30_000);

const NAMESPACE = 'openshift-node';
const MASTER = 'node-role.kubernetes.io/master';
let plane: ControlPlane;
let playing: NodeJS.Timeout;
before(async () => {
  plane = await startControlPlane();
  await plane
    .of(resources.namespaces)
    .create({ metadata: { name: NAMESPACE } })
    .catch(() => {});
  // Simulates hosts that apply every desired configuration.
  playing = setInterval(() => void play().catch(() => {}), 50);
});
after(async () => {
  clearInterval(playing);
  await plane.stop();
});

const annotation = ({ metadata }: Node, name: string): string => metadata?.annotations?.[name] ?? '';

async function play(): Promise<void> {
  for (const node of (await plane.of(resources.nodes).list()).items) {
    const desired = annotation(node, DESIRED_CONFIG);
    if (desired === '' || annotation(node, CURRENT_CONFIG) === desired) continue;
    const annotations = { [CURRENT_CONFIG]: desired, [CONFIG_STATE]: 'Done' };
    await plane.of(resources.nodes).patch(node.metadata?.name ?? '', undefined, 'merge', { metadata: { annotations } });
  }
}

const addHost = (name: string, labels: Record<string, string>): Promise<unknown> =>
  plane.addNode(name, (node) => {
    node.metadata = { ...node.metadata, labels: { ...node.metadata?.labels, ...labels } };
  });

const textOf = (args: string): string => `apiVersion: v1\nkind: NodeConfig\nkubeletArguments: {${args}}\n`;
const group = (name: string, args: string) =>
  plane.of(resources.configMaps).create({
    metadata: { name, namespace: NAMESPACE },
    data: { 'node-config.yaml': textOf(args) },
  });
const edit = (name: string, args: string) =>
  plane.of(resources.configMaps).patch(name, NAMESPACE, 'merge', { data: { 'node-config.yaml': textOf(args) } });
const byPools = async (name: string): Promise<boolean> =>
  (await plane.of(resources.configMaps).get(name, NAMESPACE)).metadata?.annotations?.[GROUP_BY_POOLS] !== undefined;
const kubeletConfigOf = async (name: string) =>
  (await plane.of(resources.kubeletConfigs).get(name)).spec?.kubeletConfig;
const poolOfNode = async (name: string): Promise<string> =>
  annotation(await plane.of(resources.nodes).get(name), DESIRED_CONFIG).replace(/^rendered-(.*)-[0-9a-f]+$/, '$1');

const event = (name: string, message: RegExp): Promise<unknown> =>
  eventually(async () => {
    const { items } = await plane.of(resources.events).list({ namespace: NAMESPACE });
    return items.some(
      (each) =>
        each.involvedObject.name === name && each.reason === 'NodeGroupNotByPools' && message.test(each.message ?? ''),
    );
  }, `an event of ${name}`);

test('creates a KubeletConfig from the kubelet arguments of a node group, and deletes it with the arguments', async () => {
  await addHost('n1', { [GROUP_LABEL]: 'node-config-compute' });
  await addHost('n2', {});
  await group('node-config-compute', 'node-labels: [a=b]');
  await eventually(() => byPools('node-config-compute'), 'a group that pools apply');
  await assert.rejects(kubeletConfigOf('node-config-compute'));
  await edit(
    'node-config-compute',
    "node-labels: [a=b], max-pods: ['42'], eviction-hard: ['memory.available<5%'], manifest-url: ['https://x']",
  );
  await eventually(async () => (await poolOfNode('n1')) === 'compute', 'the node in a pool of the group');
  assert.deepEqual(await kubeletConfigOf('node-config-compute'), {
    maxPods: 42,
    evictionHard: { 'memory.available': '5%' },
  });
  await eventually(async () => {
    const rendered = annotation(await plane.of(resources.nodes).get('n1'), CURRENT_CONFIG);
    const { spec } = await plane.of(resources.machineConfigs).get(rendered);
    return JSON.stringify(spec).includes(encodeURIComponent('"maxPods": 42'));
  }, 'the configuration on the host');
  assert.equal(await poolOfNode('n2'), 'worker');
  assert.equal(await byPools('node-config-compute'), true);
  await edit('node-config-compute', "max-pods: ['43']");
  await eventually(async () => (await kubeletConfigOf('node-config-compute'))?.['maxPods'] === 43, 'the new value');
  await edit('node-config-compute', 'node-labels: [a=b]');
  await eventually(
    () =>
      kubeletConfigOf('node-config-compute').then(
        () => false,
        (error: unknown) => isApiError(error, 'NotFound'),
      ),
    'no KubeletConfig',
  );
});

test("prefers a pool that an administrator created to the pool of the node's group", async () => {
  await edit('node-config-compute', "max-pods: ['44']");
  await eventually(async () => (await kubeletConfigOf('node-config-compute'))?.['maxPods'] === 44, 'the new value');
  const nodeSelector = { matchLabels: { special: '' } };
  const role = { key: ROLE_LABEL, operator: 'In', values: ['worker', 'special'] };
  const machineConfigSelector = { matchExpressions: [role] };
  const pools = plane.of(resources.machineConfigPools);
  await pools.create({ metadata: { name: 'special' }, spec: { machineConfigSelector, nodeSelector } });
  await plane.of(resources.nodes).patch('n1', undefined, 'merge', { metadata: { labels: { special: '' } } });
  await eventually(async () => (await poolOfNode('n1')) === 'special', 'the node in its pool');
  await event('node-config-compute', /in pool special/);
  await eventually(async () => !(await byPools('node-config-compute')), 'a group that hosts apply');
  const labels = { 'node-group.hyperedge.dev/node-config-compute': '' };
  await pools.patch('special', undefined, 'merge', { metadata: { labels } });
  await eventually(() => byPools('node-config-compute'), 'a group that the pool applies');
  const rendered = annotation(await plane.of(resources.nodes).get('n1'), CURRENT_CONFIG);
  const { spec } = await plane.of(resources.machineConfigs).get(rendered);
  assert.ok(JSON.stringify(spec).includes(encodeURIComponent('"maxPods": 44')));
});

test('a pool applies kubelet arguments of a node group in place of the hosts, and masters stay in the pool master', async () => {
  await addHost('m1', { [GROUP_LABEL]: 'node-config-all-in-one', [MASTER]: '' });
  await group('node-config-all-in-one', "max-pods: ['50']");
  await eventually(() => byPools('node-config-all-in-one'), 'a group that pools apply');
  assert.equal(await poolOfNode('m1'), 'master');
  const rendered = annotation(await plane.of(resources.nodes).get('m1'), CURRENT_CONFIG);
  const { spec } = await plane.of(resources.machineConfigs).get(rendered);
  assert.ok(JSON.stringify(spec).includes(encodeURIComponent('"maxPods": 50')));
});

test('hosts keep applying a node group if a pool cannot apply it, and an event reports the reason', async () => {
  const pools = plane.of(resources.machineConfigPools);
  const nodeSelector = { matchLabels: { rack: '7' } };
  await pools.create({
    metadata: { name: 'rack-7' },
    spec: { machineConfigSelector: { matchLabels: { a: 'b' } }, nodeSelector },
  });
  await addHost('n3', { [GROUP_LABEL]: 'node-config-infra', rack: '7' });
  await group('node-config-infra', "max-pods: ['60']");
  await event(
    'node-config-infra',
    /in pool rack-7; to apply the group to the pool, run: oc label mcp rack-7 node-group\.hyperedge/,
  );
  assert.equal(await byPools('node-config-infra'), false);
  await edit('node-config-infra', "max-pods: ['60'], bad: [");
  await event('node-config-infra', /node-config\.yaml/);
  await plane.of(resources.kubeletConfigs).create({ metadata: { name: 'node-config-taken' }, spec: {} });
  await addHost('n4', { [GROUP_LABEL]: 'node-config-taken' });
  await group('node-config-taken', "max-pods: ['60']");
  await event('node-config-taken', /there is a KubeletConfig node-config-taken already/);
});
