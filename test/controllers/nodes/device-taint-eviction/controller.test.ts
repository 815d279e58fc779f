/** Eviction of pods with tainted devices on a real API server, with a simulated driver and scheduler. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Pod, PodSpec } from '../../../../src/api/generated/core/v1.ts';
import { resources } from '../../../../src/api/resources.ts';
import { startServer, type TestServer } from '../../../apiserver/harness.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

const namespace = 'default';
const place = { driver: 'd.example.com', pool: 'p', device: 'one' };
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

const pods = () => plane.of(resources.pods);
const claims = () => plane.of(resources.resourceClaims);

async function createPodWithDevice(): Promise<Pod> {
  const request = { name: 'board', exactly: { deviceClassName: 'boards' } };
  const claim = await claims().create({
    metadata: { name: 'board', namespace },
    spec: { devices: { requests: [request] } },
  });
  const pod = await pods().create({
    metadata: { name: 'user', namespace },
    spec: {
      containers: [{ name: 'c', image: 'i' }],
      schedulerName: 'none',
      terminationGracePeriodSeconds: 0,
      resourceClaims: [{ name: 'board', resourceClaimName: 'board' }],
    } as unknown as PodSpec,
  });
  const status = {
    allocation: { devices: { results: [{ request: 'board', ...place }] } },
    reservedFor: [{ resource: 'pods', name: 'user', uid: pod.metadata?.uid ?? '' }],
  };
  await claims().update({ ...claim, status }, { subresource: 'status' });
  return pod;
}

const ruleCondition = async (name: string) =>
  (await plane.of(resources.deviceTaintRules).get(name)).status?.conditions?.[0];
const createRule = (effect: string) =>
  plane.of(resources.deviceTaintRules).create({
    metadata: { name: effect.toLowerCase() },
    spec: { deviceSelector: place, taint: { key: 'broken', effect } },
  });

test('reports the pods of a rule without effect, and evicts them for a NoExecute rule', async () => {
  await plane.of(resources.resourceSlices).create({
    metadata: { name: 'slice' },
    spec: {
      driver: place.driver,
      pool: { name: place.pool, generation: 1, resourceSliceCount: 1 },
      nodeName: 'n1',
      devices: [{ name: place.device }],
    },
  });
  await createPodWithDevice();
  await createRule('None');
  await eventually(
    async () =>
      (await ruleCondition('none'))?.message === 'With the effect NoExecute, 1 pod needs to be evicted in 1 namespace.',
    'the rule shows its pods',
  );
  assert.equal((await pods().get('user', namespace)).metadata?.deletionTimestamp, undefined);

  await createRule('NoExecute');
  await eventually(async () => (await pods().list({ namespace })).items.length === 0, 'the pod is evicted');
  await eventually(async () => (await ruleCondition('noexecute'))?.reason === 'Completed', 'the rule is completed');
  const { items } = await plane.of(resources.events).list({ namespace });
  assert.ok(items.some(({ reason }) => reason === 'DeviceTaintManagerEviction'));
});
