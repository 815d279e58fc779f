/** Scheduler profiles, an extender and pod groups on the packaged appliance, with hollow nodes. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Pod } from '../../src/api/generated/core/v1.ts';
import { Appliance, eventually, executable } from './harness.ts';

const EXTENDER_PORT = 18_888;
const NODES = 5;
const PATIENCE_MS = 60_000;

let appliance: Appliance;
const children: { kill(): boolean }[] = [];

const configuration = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  plugins:
    score:
      disabled: [{name: '*'}]
      enabled: [{name: NodeResourcesFit, weight: 5}]
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
extenders:
- urlPrefix: http://127.0.0.1:${EXTENDER_PORT}
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 10
  nodeCacheCapable: true
  managedResources: [{name: example.com/even, ignoredByScheduler: true}]
`;

const podGroups = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: podgroups.scheduling.x-k8s.io
  annotations: {api-approved.kubernetes.io: 'https://github.com/kubernetes-sigs/scheduler-plugins'}
spec:
  group: scheduling.x-k8s.io
  scope: Namespaced
  names: {plural: podgroups, singular: podgroup, kind: PodGroup, shortNames: [pg]}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`;

before(
  async () => {
    appliance = await Appliance.create();
    const etc = join(appliance.root, 'etc/origin');
    await mkdir(join(etc, 'master'), { recursive: true });
    await writeFile(join(etc, 'master/scheduler.yaml'), configuration);
    const bootstrap = `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nscheduler: {configFile: scheduler.yaml}\n`;
    await writeFile(join(etc, 'bootstrap.yaml'), bootstrap);
    await appliance.start(180_000);
    const extender = join(import.meta.dirname, 'scheduler-extender.child.ts');
    children.push(appliance.spawnInside(process.execPath, [extender, String(EXTENDER_PORT)]));
    const nodes = ['hollow', '--kubeconfig', appliance.kubeconfig, '--nodes', String(NODES)];
    children.push(appliance.spawnInside(executable, nodes));
    await eventually('hollow nodes Ready', PATIENCE_MS, async () => {
      const ready = (await appliance.must(['get', 'nodes', '--no-headers'])).match(/^hollow-\d+ +Ready /gm);
      return ready?.length === NODES ? true : undefined;
    });
    // Cordon other nodes, so that only hollow nodes get pods.
    const own = (await appliance.must(['get', 'nodes', '-o', 'name']))
      .split('\n')
      .find((name) => !/hollow|^$/.test(name));
    await appliance.must(['cordon', own ?? '']);
  },
  { timeout: 400_000 },
);

after(async () => {
  for (const child of children) child.kill();
  await appliance.stop();
});

interface Wanted {
  readonly scheduler?: string;
  readonly requests?: Readonly<Record<string, string>>;
  readonly group?: string;
}

async function create(name: string, { scheduler, requests = { cpu: '1' }, group }: Wanted): Promise<void> {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...(group === undefined ? {} : { labels: { 'scheduling.x-k8s.io/pod-group': group } }) },
    spec: {
      ...(scheduler === undefined ? {} : { schedulerName: scheduler }),
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'c', image: 'none', resources: { requests, limits: limitsOf(requests) } }],
    },
  };
  await appliance.must(['create', '-f', '-'], { input: JSON.stringify(pod) });
}

/** Extended resources must have limits equal to their requests. */
const limitsOf = (requests: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(requests).filter(([name]) => name.includes('/')));

const read = async (name: string): Promise<Pod> =>
  JSON.parse(await appliance.must(['get', 'pod', name, '-o', 'json'])) as Pod;

const running = (name: string): Promise<Pod> =>
  eventually(`${name} running`, PATIENCE_MS, async () => {
    const pod = await read(name);
    return pod.status?.phase === 'Running' ? pod : undefined;
  });

test('uses the scores of each profile by scheduler name and ignores unknown names', async () => {
  for (let index = 0; index < 6; index++) await create(`packed-${index}`, { scheduler: 'packing' });
  for (let index = 0; index < 5; index++) await create(`spread-${index}`, {});
  await create('foreign', { scheduler: 'another' });
  const nodesOf = async (prefix: string, count: number): Promise<Set<string | undefined>> => {
    const pods = await Promise.all(Array.from({ length: count }, (_, index) => running(`${prefix}-${index}`)));
    return new Set(pods.map(({ spec }) => spec?.nodeName));
  };
  assert.equal((await nodesOf('packed', 6)).size, 1, 'MostAllocated fills one node');
  assert.ok((await nodesOf('spread', 5)).size >= 4, 'LeastAllocated uses the others');
  assert.equal((await read('foreign')).spec?.nodeName, undefined);
});

test('calls an extender to filter and prioritize nodes for pods with its resource', async () => {
  await create('even', { requests: { cpu: '100m', 'example.com/even': '1' } });
  assert.equal((await running('even')).spec?.nodeName, 'hollow-2');
});

test('places a pod group completely or not at all', async () => {
  await appliance.must(['apply', '-f', '-'], { input: podGroups });
  await appliance.must(['wait', '--for=condition=Established', 'crd/podgroups.scheduling.x-k8s.io']);
  const group = (name: string, minMember: number) => ({
    apiVersion: 'scheduling.x-k8s.io/v1alpha1',
    kind: 'PodGroup',
    metadata: { name },
    spec: { minMember, scheduleTimeoutSeconds: 20 },
  });
  for (const each of [group('gang', 6), group('small', 3)]) {
    await eventually('pod group created', PATIENCE_MS, async () =>
      (await appliance.kubectl(['create', '-f', '-'], { input: JSON.stringify(each) })).code === 0 ? true : undefined,
    );
  }
  // Each pod needs more than half a node, so five nodes have space for five of six.
  const large = { cpu: '20' };
  for (let index = 0; index < 6; index++) await create(`gang-${index}`, { group: 'gang', requests: large });
  const message = await eventually('the group is refused', PATIENCE_MS, async () => {
    const condition = (await read('gang-0')).status?.conditions?.find(({ type }) => type === 'PodScheduled');
    return /5 of 6 members of pod group "default\/gang" fit/.test(condition?.message ?? '')
      ? condition?.message
      : undefined;
  });
  assert.match(message, /Insufficient cpu/);
  for (let index = 0; index < 6; index++) assert.equal((await read(`gang-${index}`)).spec?.nodeName, undefined);
  // The rejected group reserves nothing, so another group is placed when it is complete.
  for (let index = 0; index < 2; index++) await create(`small-${index}`, { group: 'small', requests: large });
  await eventually('the group is incomplete', PATIENCE_MS, async () => {
    const condition = (await read('small-0')).status?.conditions?.find(({ type }) => type === 'PodScheduled');
    return /cannot find enough sibling pods, current pods number: \d, minMember of group: 3/.test(
      condition?.message ?? '',
    )
      ? true
      : undefined;
  });
  await create('small-2', { group: 'small', requests: large });
  for (let index = 0; index < 3; index++) await running(`small-${index}`);
  // After the small group was deleted and one member fewer is required, the large group is placed.
  await appliance.must(['delete', 'pod', 'small-0', 'small-1', 'small-2', '--wait=false']);
  const fewer = JSON.stringify({ spec: { minMember: 5 } });
  await appliance.must(['patch', 'podgroups.scheduling.x-k8s.io', 'gang', '--type=merge', '-p', fewer]);
  await eventually('five members placed', PATIENCE_MS, async () => {
    const pods = await Promise.all(Array.from({ length: 6 }, (_, index) => read(`gang-${index}`)));
    return pods.filter(({ spec }) => spec?.nodeName !== undefined).length === 5 ? true : undefined;
  });
});
