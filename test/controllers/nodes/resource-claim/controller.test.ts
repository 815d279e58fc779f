/** Device claims with a simulated driver and scheduler. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ResourceClaim } from '../../../../src/api/devices/types.ts';
import type { Pod, PodSpec } from '../../../../src/api/generated/core/v1.ts';
import { resources } from '../../../../src/api/resources.ts';
import { startServer, type TestServer } from '../../../apiserver/harness.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

let api: TestServer;
let plane: ControlPlane;
before(async () => {
  api = await startServer({ config: { runtimeConfig: new Map([['resource.k8s.io/v1beta2', true]]) } });
  plane = await startControlPlane({ kubelets: false, api });
});
after(async () => {
  await plane.stop();
  await api.stop();
});

const request = { devices: { requests: [{ name: 'board', exactly: { deviceClassName: 'boards' } }] } };
const claims = () => plane.of(resources.resourceClaims);
const pods = () => plane.of(resources.pods);
type Status = { resourceClaimStatuses?: { name: string; resourceClaimName?: string }[] };

const claimOf = (pod: string): Promise<string> =>
  eventually(
    async () =>
      ((await pods().get(pod, 'default')).status as Status | undefined)?.resourceClaimStatuses?.[0]?.resourceClaimName,
    `the claim of ${pod} is recorded`,
  );

const createPod = (name: string): Promise<Pod> =>
  pods().create({
    metadata: { name, namespace: 'default' },
    spec: {
      containers: [{ name: 'c', image: 'i' }],
      schedulerName: 'none',
      terminationGracePeriodSeconds: 0,
      resourceClaims: [{ name: 'board', resourceClaimTemplateName: 'board' }],
    } as unknown as PodSpec,
  });

async function allocate(name: string, pod: Pod): Promise<ResourceClaim> {
  const protectedOne = await claims().patch(name, 'default', 'merge', {
    metadata: { finalizers: ['resource.kubernetes.io/delete-protection'] },
  });
  return claims().update(
    {
      ...protectedOne,
      status: {
        allocation: { devices: { results: [{ request: 'board', driver: 'd.example.com', pool: 'p', device: 'one' }] } },
        reservedFor: [{ resource: 'pods', name: pod.metadata?.name ?? '', uid: pod.metadata?.uid ?? '' }],
      },
    },
    { subresource: 'status' },
  );
}

test('creates a claim from an existing template, and deletes the claim after its pod has ended', {
  timeout: 60_000,
}, async () => {
  const pod = await createPod('one');
  await eventually(async () => {
    const { items } = await plane.of(resources.events).list({ namespace: 'default' });
    return items.some(
      ({ reason, message }) => reason === 'FailedResourceClaimCreation' && /"board" not found/.test(message ?? ''),
    );
  }, 'an event names the missing template');
  await plane.of(resources.resourceClaimTemplates).create({
    metadata: { name: 'board', namespace: 'default' },
    spec: { metadata: { labels: { rig: 'a' } }, spec: request },
  });
  const name = await claimOf('one');
  assert.match(name, /^one-board-/);
  const claim = await claims().get(name, 'default');
  assert.equal(claim.metadata?.labels?.['rig'], 'a');
  assert.equal(claim.metadata?.annotations?.['resource.kubernetes.io/pod-claim-name'], 'board');
  assert.equal(claim.metadata?.ownerReferences?.[0]?.uid, pod.metadata?.uid);
  await allocate(name, pod);
  await pods().patch('one', 'default', 'merge', { status: { phase: 'Succeeded' } }, { subresource: 'status' });
  await eventually(
    async () => !(await claims().list({ namespace: 'default' })).items.some(({ metadata }) => metadata?.name === name),
    'released and deleted',
  );
});

test('releases a shared claim of ended pods but keeps the claim, and evicts a pod whose device is tainted', {
  timeout: 60_000,
}, async () => {
  await claims().create({ metadata: { name: 'shared', namespace: 'default' }, spec: request });
  const pod = await pods().create({
    metadata: { name: 'two', namespace: 'default' },
    spec: {
      containers: [{ name: 'c', image: 'i' }],
      schedulerName: 'none',
      terminationGracePeriodSeconds: 0,
      resourceClaims: [{ name: 'board', resourceClaimName: 'shared' }],
    } as unknown as PodSpec,
  });
  await allocate('shared', pod);
  await plane.of(resources.resourceSlices).create({
    metadata: { name: 'slice' },
    spec: {
      driver: 'd.example.com',
      nodeName: 'n',
      pool: { name: 'p', generation: 1, resourceSliceCount: 1 },
      devices: [{ name: 'one', taints: [{ key: 'unplugged', effect: 'NoExecute' }] }],
    },
  });
  await eventually(
    async () => !(await pods().list({ namespace: 'default' })).items.some(({ metadata }) => metadata?.name === 'two'),
    'the pod is deleted',
  );
  const released = await eventually(async () => {
    const claim = await claims().get('shared', 'default');
    return (claim.status?.reservedFor ?? []).length === 0 && (claim.metadata?.finalizers ?? []).length === 0 && claim;
  }, 'released');
  assert.equal(released.status?.allocation, undefined);
});

test('evicts pods of devices that a DeviceTaintRule selects, and reports the eviction', {
  timeout: 60_000,
}, async () => {
  const rules = plane.of(resources.deviceTaintRules);
  await plane.of(resources.resourceSlices).create({
    metadata: { name: 'healthy' },
    spec: {
      driver: 'd.example.com',
      nodeName: 'n',
      pool: { name: 'q', generation: 1, resourceSliceCount: 1 },
      devices: [{ name: 'two' }, { name: 'three' }],
    },
  });
  const holders = new Map<string, Pod>();
  for (const device of ['two', 'three']) {
    await claims().create({ metadata: { name: device, namespace: 'default' }, spec: request });
    const pod = await pods().create({
      metadata: { name: `holder-${device}`, namespace: 'default' },
      spec: {
        containers: [{ name: 'c', image: 'i' }],
        schedulerName: 'none',
        terminationGracePeriodSeconds: 0,
        resourceClaims: [{ name: 'board', resourceClaimName: device }],
      } as unknown as PodSpec,
    });
    holders.set(device, pod);
    const { metadata } = await claims().get(device, 'default');
    await claims().update(
      {
        metadata: metadata ?? {},
        spec: request,
        status: {
          allocation: { devices: { results: [{ request: 'board', driver: 'd.example.com', pool: 'q', device }] } },
          reservedFor: [{ resource: 'pods', name: pod.metadata?.name ?? '', uid: pod.metadata?.uid ?? '' }],
        },
      },
      { subresource: 'status' },
    );
  }
  const deviceSelector = { driver: 'd.example.com', pool: 'q', device: 'two' };
  const rule = await rules.create({
    metadata: { name: 'broken' },
    spec: { deviceSelector, taint: { key: 'example.com/broken', effect: 'None' } },
  });
  const condition = async (status: string, message: RegExp) =>
    eventually(async () => {
      const [found] = (await rules.get('broken')).status?.conditions ?? [];
      return found?.status === status && message.test(found.message) ? found : undefined;
    }, `condition ${status} ${message}`);
  await condition('False', /With the effect NoExecute, 1 pod needs to be evicted in 1 namespace\./);
  assert.ok((await pods().get('holder-two', 'default')).metadata?.deletionTimestamp === undefined);
  const now = await rules.get('broken');
  await rules.update({ ...now, spec: { deviceSelector, taint: { ...rule.spec?.taint, effect: 'NoExecute' } } });
  const names = async () => (await pods().list({ namespace: 'default' })).items.map(({ metadata }) => metadata?.name);
  await eventually(async () => !(await names()).includes('holder-two'), 'the pod is deleted');
  assert.ok((await names()).includes('holder-three'), 'another device keeps its pod');
  assert.equal((await condition('False', /^0 pods need/)).reason, 'Completed');
  await assert.rejects(
    rules.create({ metadata: { name: 'bad' }, spec: { taint: { key: 'x', effect: 'Sometimes' } } }),
    /spec\.taint\.effect: Unsupported value: "Sometimes"/,
  );
});
