/** Claims for extended resources that device classes provide (KEP-5004). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { classesByResource } from '../../../../src/api/devices/extended-resources.ts';
import type { DeviceClass, ResourceClaim } from '../../../../src/api/devices/types.ts';
import type { Container, Node, Pod } from '../../../../src/api/generated/core/v1.ts';
import { podInfoOf } from '../../../../src/api/podspec/scheduling/pod-info.ts';
import type { ClusterView } from '../../../../src/scheduler/core/cluster.ts';
import type { DeviceLister } from '../../../../src/scheduler/core/devices/device-lister.ts';
import { extendedClaimOn } from '../../../../src/scheduler/core/devices/extended-claims.ts';
import { dynamicResources } from '../../../../src/scheduler/core/filters/devices.ts';
import { nodeResourcesFit } from '../../../../src/scheduler/core/filters/node.ts';
import { canChangeResult } from '../../../../src/scheduler/core/hints.ts';
import { NodeInfo } from '../../../../src/scheduler/core/node-info.ts';
import { DEFAULT_ARGS } from '../../../../src/scheduler/core/plugin-args.ts';

const GPU = 'example.com/gpu';
const gpus: DeviceClass = {
  metadata: { name: 'gpus', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { extendedResourceName: GPU },
};
const device = (name: string): { name: string } => ({ name });
const slice = {
  spec: {
    driver: 'd',
    nodeName: 'n',
    pool: { name: 'p', generation: 1, resourceSliceCount: 1 },
    devices: ['a', 'b', 'c'].map(device),
  },
};

function listerOf(stale?: ResourceClaim): DeviceLister {
  const classes = classesByResource([gpus]);
  return {
    claim: () => undefined,
    deviceClass: (name) => (name === 'gpus' ? gpus : undefined),
    classOfResource: (name) => classes.get(name),
    extendedClaimOf: () => stale,
    hasFailedBinding: () => false,
    slicesFor: () => [slice],
    isAllocated: () => false,
    consumed: () => undefined,
    withheld: () => undefined,
    newShareId: () => '',
    isPending: () => false,
    meets: () => true,
  };
}

const asking = (name: string, requests: Record<string, string>, more: Partial<Container> = {}): Container => ({
  name,
  image: 'i',
  resources: { requests },
  ...more,
});
const podOf = (containers: Container[], initContainers: Container[] = []): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u' },
  spec: { containers, initContainers },
});
const nodeOf = (resources: Record<string, string>): Node => ({
  metadata: { name: 'n' },
  status: { allocatable: { cpu: '4', pods: '10', ...resources } },
});

describe('device classes of extended resources', () => {
  const made = (name: string, at: string): DeviceClass => ({
    metadata: { name, creationTimestamp: `2026-01-0${at}T00:00:00Z` },
    spec: { extendedResourceName: GPU },
  });
  it('maps an extended resource to the newest device class with its name, and among equally old ones to the first by name', () => {
    const nameOf = (classes: DeviceClass[], resource: string) =>
      classesByResource(classes).get(resource)?.metadata?.name;
    assert.equal(nameOf([gpus], 'deviceclass.resource.kubernetes.io/gpus'), 'gpus');
    assert.equal(nameOf([made('b', '1'), made('c', '2'), made('a', '1')], GPU), 'c');
    assert.equal(nameOf([made('b', '1'), made('a', '1')], GPU), 'a');
    assert.equal(nameOf([made('b', '1')], 'example.com/other'), undefined);
  });
});

describe('claim for extended resources', () => {
  it("the claim for extended resources has one request per container, named after the container's index", () => {
    const pod = podOf([asking('a', { cpu: '1', [GPU]: '2' }), asking('b', { [GPU]: '1' }), asking('c', { cpu: '1' })]);
    const extended = extendedClaimOn(podInfoOf(pod), new Map(), listerOf());
    assert.deepEqual(
      extended?.claim.spec?.devices?.requests?.map(({ name, exactly }) => [
        name,
        exactly?.deviceClassName,
        exactly?.count,
      ]),
      [
        ['container-0-request-1', 'gpus', 2],
        ['container-1-request-0', 'gpus', 1],
      ],
    );
    assert.deepEqual(extended?.mappings, [
      { containerName: 'a', resourceName: GPU, requestName: 'container-0-request-1' },
      { containerName: 'b', resourceName: GPU, requestName: 'container-1-request-0' },
    ]);
    const { metadata } = extended?.claim ?? {};
    assert.equal(metadata?.generateName, 'p-extended-resources-');
    assert.deepEqual(metadata?.annotations, { 'resource.kubernetes.io/extended-resource-claim': 'true' });
    assert.deepEqual(metadata?.ownerReferences, [
      { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u', controller: true },
    ]);
  });

  it('init containers reuse the devices of later containers, and additional devices are shared among them', () => {
    const init = (name: string, count: string): Container => asking(name, { [GPU]: count });
    const sidecar = asking('side', { [GPU]: '1' }, { restartPolicy: 'Always' });
    const pod = podOf(
      [asking('main', { [GPU]: '2' })],
      [init('one', '4'), sidecar, init('two', '5'), init('three', '1')],
    );
    const extended = extendedClaimOn(podInfoOf(pod), new Map(), listerOf());
    assert.deepEqual(
      extended?.claim.spec?.devices?.requests?.map(({ name, exactly }) => `${name}=${exactly?.count}`),
      ['container-1-request-0=1', 'container-2-request-0=3', 'container-4-request-0=2'],
    );
    assert.deepEqual(
      extended?.mappings.map(({ containerName, requestName }) => `${containerName}:${requestName.slice(0, 11)}`),
      [
        ...['side:container-1', 'main:container-4', 'one:container-1', 'one:container-4', 'two:container-4'],
        ...['three:container-4', 'one:container-2', 'two:container-2'],
      ],
    );
  });

  it('creates no claim for extended resources that the node provides or that have no device class', () => {
    const info = podInfoOf(podOf([asking('a', { [GPU]: '2', 'example.com/other': '1' })]));
    assert.equal(extendedClaimOn(info, new Map([[GPU, 1]]), listerOf()), undefined);
    const requests = extendedClaimOn(info, new Map([[GPU, 0]]), listerOf())?.claim.spec?.devices?.requests;
    assert.equal(requests?.length, 1);
  });
});

describe('pod with an extended resource of a device class', () => {
  const judge = (pod: Pod, node: Node, lister: DeviceLister): string | undefined => {
    const view = { devices: lister } as ClusterView;
    const info = new NodeInfo(node);
    const checks = [nodeResourcesFit(DEFAULT_ARGS), dynamicResources(DEFAULT_ARGS)].map((filter) =>
      filter(podInfoOf(pod), view),
    );
    for (const check of checks) {
      const rejection = check?.(info);
      if (rejection !== undefined) return rejection.reasons.join();
    }
    return undefined;
  };
  const wanting = (count: string, name = GPU): Pod => podOf([asking('a', { [name]: count })]);

  it('a pod with an extended resource fits a node with enough devices and without a device plug-in', () => {
    assert.equal(judge(wanting('3'), nodeOf({}), listerOf()), undefined);
    assert.equal(judge(wanting('3', 'deviceclass.resource.kubernetes.io/gpus'), nodeOf({}), listerOf()), undefined);
    assert.match(judge(wanting('4'), nodeOf({}), listerOf()) ?? '', /cannot allocate all claims/);
    assert.equal(judge(wanting('1', 'example.com/other'), nodeOf({}), listerOf()), 'Insufficient example.com/other');
  });

  it("an extended resource counts against the node's allocatable resources if a device plug-in provides it", () => {
    assert.equal(judge(wanting('4'), nodeOf({ [GPU]: '4' }), listerOf()), undefined);
    assert.equal(judge(wanting('3'), nodeOf({ [GPU]: '2' }), listerOf()), `Insufficient ${GPU}`);
  });

  it('a pod with an extended resource waits until the claim of an earlier attempt is deleted', () => {
    assert.equal(judge(wanting('1'), nodeOf({}), listerOf({})), 'cannot schedule extended resource claim');
  });

  it('retries a pod with an extended resource when device classes, devices or nodes change', () => {
    assert.ok(canChangeResult('NodeResourcesFit', podInfoOf(wanting('1')), { kind: 'DevicesChanged' }));
    assert.ok(canChangeResult('NodeResourcesFit', podInfoOf(wanting('1')), { kind: 'NodeAdded', node: nodeOf({}) }));
    const plain = podInfoOf(podOf([asking('a', { cpu: '1' })]));
    assert.ok(!canChangeResult('NodeResourcesFit', plain, { kind: 'DevicesChanged' }));
  });
});
