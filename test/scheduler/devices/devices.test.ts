/** Devices during binding: extended resources of classes (KEP-5004) and binding conditions (KEP-5007). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { extendedClaimStatus } from '../../../src/api/devices/extended-resources.ts';
import type { Device, ResourceClaim } from '../../../src/api/devices/types.ts';
import type { Pod, PodSpec } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../controllers/harness.ts';

const DRIVER = 'd.example.com';
const GPU = 'example.com/gpu';
const namespace = 'default';
let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane({ kubelets: false });
  await plane.addNode('n1');
});
after(() => plane.stop());

const pods = () => plane.of(resources.pods);
const claims = () => plane.of(resources.resourceClaims);

async function publish(name: string, devices: Device[]): Promise<void> {
  const pool = { name, generation: 1, resourceSliceCount: 1 };
  await plane.of(resources.resourceSlices).create({
    metadata: { name },
    spec: { driver: DRIVER, nodeName: 'n1', pool, devices },
  });
}
const selecting = (kind: string) => ({
  selectors: [{ cel: { expression: `device.attributes['${DRIVER}'].kind == '${kind}'` } }],
});
const deviceOf = (name: string, kind: string, more: Partial<Device> = {}): Device => ({
  name,
  attributes: { kind: { string: kind } },
  ...more,
});
const withLimits = (name: string, limits: Record<string, string>): Promise<Pod> =>
  pods().create({
    metadata: { name, namespace },
    spec: { containers: [{ name: 'c', image: 'i', resources: { limits } }], terminationGracePeriodSeconds: 0 },
  });
const scheduled = (name: string) =>
  eventually(async () => {
    const pod = await pods().get(name, namespace);
    return (pod.spec?.nodeName ?? '') !== '' && pod;
  }, `${name} on a node`);
const waits = (name: string, pattern: RegExp) =>
  eventually(async () => {
    const condition = (await pods().get(name, namespace)).status?.conditions?.find(
      ({ type }) => type === 'PodScheduled',
    );
    return condition?.status === 'False' && pattern.test(condition.message ?? '') && condition;
  }, `${name} waits: ${pattern}`);

describe('pod with an extended resource of a device class', { timeout: 60_000 }, () => {
  it('creates a claim for an extended resource with an explicit or implicit name, and deletes it with the pod', async () => {
    await withLimits('first', { [GPU]: '1' });
    await waits('first', /1 Insufficient example.com\/gpu/);
    await publish('gpus', [deviceOf('gpu-0', 'gpu')]);
    await plane.of(resources.deviceClasses).create({
      metadata: { name: 'gpus' },
      spec: { ...selecting('gpu'), extendedResourceName: GPU },
    });
    const first = await scheduled('first');
    const status = extendedClaimStatus(first);
    assert.deepEqual(status?.requestMappings, [
      { containerName: 'c', resourceName: GPU, requestName: 'container-0-request-0' },
    ]);
    const claim = await claims().get(status?.resourceClaimName ?? '', namespace);
    assert.match(claim.metadata?.name ?? '', /^first-extended-resources-/);
    assert.equal(claim.metadata?.annotations?.['resource.kubernetes.io/extended-resource-claim'], 'true');
    assert.equal(claim.status?.allocation?.devices?.results?.[0]?.device, 'gpu-0');
    assert.deepEqual(claim.status?.reservedFor, [{ resource: 'pods', name: 'first', uid: first.metadata?.uid }]);

    await withLimits('second', { 'deviceclass.resource.kubernetes.io/gpus': '1' });
    await waits('second', /cannot allocate all claims .*1 of 1 matching devices in use/);
    await pods().patch('first', namespace, 'merge', { status: { phase: 'Succeeded' } }, { subresource: 'status' });
    const second = await scheduled('second');
    assert.notEqual(extendedClaimStatus(second)?.resourceClaimName, status?.resourceClaimName);
    await eventually(async () => (await claims().list({ namespace })).items.length === 1, 'the first claim is deleted');
    await pods().delete('second', namespace);
    await eventually(
      async () => (await claims().list({ namespace })).items.length === 0,
      'the second claim is deleted',
    );
  });
});

describe('claim left by an earlier scheduling attempt', { timeout: 60_000 }, () => {
  it('deletes the extended resource claim of an interrupted attempt before it schedules the pod', async () => {
    const name = 'interrupted';
    const pod = await pods().create({
      metadata: { name, namespace },
      spec: {
        containers: [{ name: 'c', image: 'i', resources: { limits: { [GPU]: '1' } } }],
        schedulingGates: [{ name: 'example.com/wait' }],
      },
    });
    const left = await claims().create({
      metadata: {
        name: 'left',
        namespace,
        finalizers: ['resource.kubernetes.io/delete-protection'],
        annotations: { 'resource.kubernetes.io/extended-resource-claim': 'true' },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid: pod.metadata?.uid ?? '', controller: true }],
      },
      spec: { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'gpus' } }] } },
    });
    await pods().patch(name, namespace, 'merge', { spec: { schedulingGates: null } });
    const made = extendedClaimStatus(await scheduled(name))?.resourceClaimName;
    assert.notEqual(made, left.metadata?.name);
    const names = (await claims().list({ namespace })).items.map(({ metadata }) => metadata?.name);
    assert.deepEqual(names, [made]);
    await pods().delete(name, namespace, { gracePeriodSeconds: 0 });
  });
});

describe('device with binding conditions', { timeout: 60_000 }, () => {
  const binding = { bindingConditions: ['d.example.com/attached'], bindingFailureConditions: ['d.example.com/broken'] };
  const allocated = () =>
    eventually(async () => {
      const claim = await claims().get('fabric', namespace);
      return claim.status?.allocation !== undefined && claim;
    }, 'the claim is allocated');
  const deviceIn = (claim: ResourceClaim) => claim.status?.allocation?.devices?.results?.[0]?.device;
  const report = async (claim: ResourceClaim, type: string): Promise<void> => {
    const [result] = claim.status?.allocation?.devices?.results ?? [];
    const { driver = '', pool = '', device = '' } = result ?? {};
    const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, '');
    const condition = { type, status: 'True', reason: 'Reported', message: 'by the driver', lastTransitionTime };
    const devices = [{ driver, pool, device, conditions: [condition] }];
    await claims().update({ ...claim, status: { ...claim.status, devices } }, { subresource: 'status' });
  };

  it('delays a pod until the binding conditions of its device are true, and selects another device when one fails', async () => {
    await publish('fabric', [
      deviceOf('port-0', 'port', { ...binding, bindsToNode: true }),
      deviceOf('port-1', 'port', binding),
    ]);
    await plane.of(resources.deviceClasses).create({ metadata: { name: 'ports' }, spec: selecting('port') });
    await claims().create({
      metadata: { name: 'fabric', namespace },
      spec: { devices: { requests: [{ name: 'port', exactly: { deviceClassName: 'ports' } }] } },
    });
    await pods().create({
      metadata: { name: 'user', namespace },
      spec: {
        containers: [{ name: 'c', image: 'i' }],
        resourceClaims: [{ name: 'port', resourceClaimName: 'fabric' }],
      } as unknown as PodSpec,
    });
    const before = await allocated();
    assert.deepEqual(before.status?.allocation?.devices?.results?.[0]?.bindingConditions, binding.bindingConditions);
    assert.ok(Math.abs(Date.parse(before.status?.allocation?.allocationTimestamp ?? '') - Date.now()) < 60_000);
    await eventually(async () => {
      const { items } = await plane.of(resources.events).list({ namespace });
      return items.some(
        ({ reason, message }) =>
          reason === 'BindingConditionsPending' && message === 'waiting for binding conditions for device on node n1',
      );
    }, 'the event');
    assert.equal((await pods().get('user', namespace)).spec?.nodeName, undefined);

    await report(before, 'd.example.com/broken');
    await waits('user', /device binding failed: claim=fabric, reason=Reported, message="by the driver"/);
    const again = await eventually(async () => {
      const claim = await claims().get('fabric', namespace);
      const { allocation, devices } = claim.status ?? {};
      return allocation !== undefined && devices === undefined && claim;
    }, 'the claim is allocated again');
    await report(again, 'd.example.com/attached');
    await scheduled('user');
    assert.equal(deviceIn(await claims().get('fabric', namespace)), deviceIn(again));
  });
});
