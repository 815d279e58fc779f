/** A fixture of a test rig is both an extended resource and a device, but is never used as both at once. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ResourceClaim } from '../../../src/api/devices/types.ts';
import type { Node, Pod } from '../../../src/api/generated/core/v1.ts';
import { podInfoOf } from '../../../src/api/podspec/scheduling/pod-info.ts';
import { toUid } from '../../../src/base/brand.ts';
import type { ClusterView } from '../../../src/scheduler/core/cluster.ts';
import { AllocatedDevices } from '../../../src/scheduler/core/devices/allocated-devices.ts';
import type { DeviceLister } from '../../../src/scheduler/core/devices/device-lister.ts';
import { dynamicResources } from '../../../src/scheduler/core/filters/devices.ts';
import { canChangeResult } from '../../../src/scheduler/core/hints.ts';
import { NodeInfo } from '../../../src/scheduler/core/node-info.ts';
import { DEFAULT_ARGS } from '../../../src/scheduler/core/plugin-args.ts';

const DRIVER = 'rig.hyperedge.dev';
const node: Node = { metadata: { name: 'n' }, status: { allocatable: { [`${DRIVER}/Board_1`]: '1' } as never } };
const device = { name: 'board-1', attributes: { fixture: { string: 'Board_1' } } };
const slice = { spec: { driver: DRIVER, nodeName: 'n', pool: { name: 'n', generation: 1 }, devices: [device] } };
const claim: ResourceClaim = {
  metadata: { name: 'c', namespace: 'default', uid: 'c' },
  spec: { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'any', count: 1 } }] } },
};
const podOf = (name: string, spec: object): Pod =>
  ({ metadata: { name, namespace: 'default', uid: name }, spec: { containers: [], ...spec } }) as never;
const extended = podOf('extended', {
  containers: [{ name: 'c', image: 'i', resources: { requests: { [`${DRIVER}/Board_1`]: '1' } } }],
});
const claiming = podOf('claiming', { resourceClaims: [{ name: 'r', resourceClaimName: 'c' }] });

function lab(rig?: string) {
  const allocated = new AllocatedDevices();
  const lister: DeviceLister = {
    claim: () => claim,
    deviceClass: () => ({ spec: {} }),
    classOfResource: () => undefined,
    extendedClaimOf: () => undefined,
    hasFailedBinding: () => false,
    slicesFor: () => [slice],
    isAllocated: (driver, pool, name) => allocated.isAllocated(driver, pool, name),
    consumed: () => undefined,
    withheld: () => rig,
    newShareId: () => '',
    isPending: () => false,
    meets: () => true,
  };
  const info = new NodeInfo(node);
  const check = (pod: Pod): string | undefined =>
    dynamicResources(DEFAULT_ARGS)(podInfoOf(pod), { devices: lister } as ClusterView)?.(info)?.reasons.join();
  return { allocated, info, check };
}

describe('fixtures of a node', () => {
  it('a fixture is not allocated to a claim while a pod uses it as an extended resource', () => {
    const { info, check } = lab();
    assert.equal(check(claiming), undefined);
    info.add(podInfoOf(extended));
    assert.match(check(claiming) ?? '', /1 of 1 matching devices in use.*fixture Board_1 is in use as an extended res/);
    const left = { kind: 'PodLeft', pod: podInfoOf(extended) } as const;
    assert.ok(canChangeResult('DynamicResources', podInfoOf(claiming), left));
    assert.ok(!canChangeResult('DynamicResources', podInfoOf(claiming), { ...left, pod: podInfoOf(claiming) }));
    info.remove(toUid('extended'));
    assert.equal(check(claiming), undefined);
  });

  it('a pod does not receive a fixture as an extended resource while a claim has it', () => {
    const { allocated, check } = lab();
    assert.equal(check(extended), undefined);
    const results = [{ request: 'r', driver: DRIVER, pool: 'n', device: 'board-1' }];
    allocated.set('c', { devices: { results } });
    assert.equal(check(extended), `Insufficient ${DRIVER}/Board_1`);
    allocated.set('c', { devices: { results: [{ ...results[0], pool: 'm' }] } });
    assert.equal(check(extended), undefined);
  });

  it('a fixture is not allocated to a claim while it belongs to a rig', () => {
    const { check } = lab('fixture board-1 belongs to rig bench');
    assert.match(check(claiming) ?? '', /in use, 1 needed; fixture board-1 belongs to rig bench\)/);
    assert.equal(check(extended), undefined);
  });
});
