/** Devices that become ready only after their allocation (KEP-5007). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Device, ResourceClaim, ResourceSlice } from '../../../src/api/devices/types.ts';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import { bindingState, hasBindingConditions } from '../../../src/scheduler/core/binding-conditions.ts';
import type { Allocation } from '../../../src/scheduler/core/devices/device-results.ts';
import { allocateDevices } from '../../../src/scheduler/core/devices/devices.ts';

const AT = '2026-01-01T00:00:00Z';
const TIMEOUT_MS = 600_000;

describe('binding conditions of an allocated claim', () => {
  const claimOf = (...conditions: [type: string, status: string][]): ResourceClaim => {
    const device = { driver: 'd', pool: 'p', device: 'one' };
    const binding = { bindingConditions: ['a', 'b'], bindingFailureConditions: ['x'] };
    const common = { reason: 'R', message: 'why', lastTransitionTime: AT };
    return {
      metadata: { name: 'c' },
      status: {
        allocation: {
          devices: {
            results: [
              { ...device, ...binding },
              { ...device, device: 'two' },
            ],
          },
          allocationTimestamp: AT,
        },
        devices: [{ ...device, conditions: conditions.map(([type, status]) => ({ type, status, ...common })) }],
      },
    };
  };
  const stateOf = (claim: ResourceClaim, afterMs = 0) => bindingState(claim, Date.parse(AT) + afterMs, TIMEOUT_MS);

  it('a claim waits until all binding conditions of its devices are true, and fails at the time-out', () => {
    assert.ok(hasBindingConditions(claimOf()));
    assert.deepEqual(stateOf(claimOf(['a', 'True'])), { kind: 'waiting' });
    assert.deepEqual(stateOf(claimOf(['a', 'True'], ['b', 'False']), TIMEOUT_MS), { kind: 'waiting' });
    assert.deepEqual(stateOf(claimOf(['a', 'True']), TIMEOUT_MS + 1), {
      kind: 'failed',
      why: 'device binding timeout: claim=c',
    });
    assert.deepEqual(stateOf(claimOf(['a', 'True'], ['b', 'True']), TIMEOUT_MS + 1), { kind: 'ready' });
  });

  it('a claim fails if a binding failure condition of its device is true, and names the condition', () => {
    const why = 'device binding failed: claim=c, reason=R, message="why"';
    assert.deepEqual(stateOf(claimOf(['a', 'True'], ['b', 'True'], ['x', 'True'])), { kind: 'failed', why });
    assert.deepEqual(stateOf(claimOf(['a', 'True'], ['b', 'True'], ['x', 'False'])), { kind: 'ready' });
  });

  it('a claim is ready at once if no allocated device has binding conditions', () => {
    const claim: ResourceClaim = { status: { allocation: { devices: { results: [{ device: 'two' }] } } } };
    assert.ok(!hasBindingConditions(claim));
    assert.deepEqual(bindingState(claim, 0, TIMEOUT_MS), { kind: 'ready' });
  });
});

describe('allocation of devices that several nodes can access', () => {
  const node: Node = { metadata: { name: 'n', labels: { rack: 'r1' } } };
  const inRack = { matchExpressions: [{ key: 'rack', operator: 'In', values: ['r1'] }] };
  const allocate = (slices: ResourceSlice['spec'][], count = 1): Allocation => {
    const claim: ResourceClaim = {
      spec: { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'any', count } }] } },
    };
    const lister = {
      claim: () => undefined,
      deviceClass: () => ({ spec: {} }),
      classOfResource: () => undefined,
      extendedClaimOf: () => undefined,
      hasFailedBinding: () => false,
      slicesFor: () => slices.map((spec) => ({ spec }) as ResourceSlice),
      isAllocated: () => false,
      consumed: () => undefined,
      withheld: () => undefined,
      newShareId: () => '',
      isPending: () => false,
      meets: () => true,
    };
    return (allocateDevices([claim], { node, requested: new Map() }, lister) as Allocation[])[0] as Allocation;
  };
  const sliceOf = (pool: string, reach: object, ...devices: Device[]): ResourceSlice['spec'] => {
    return { driver: 'd', pool: { name: pool, generation: 1, resourceSliceCount: 1 }, devices, ...reach };
  };
  const local = { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] }] };
  const selectorOf = (...slices: ResourceSlice['spec'][]) => allocate(slices, slices.length).nodeSelector;

  it('the node selector of an allocation matches the nodes that can access all allocated devices', () => {
    const everywhere = sliceOf('fabric', { allNodes: true }, { name: 'a' });
    const rack = sliceOf('rack', { nodeSelector: { nodeSelectorTerms: [inRack] } }, { name: 'b' });
    assert.equal(selectorOf(everywhere), undefined);
    assert.deepEqual(selectorOf(everywhere, rack, { ...rack, pool: { name: 'rack-2' } }), {
      nodeSelectorTerms: [inRack],
    });
    assert.deepEqual(selectorOf(everywhere, sliceOf('own', { nodeName: 'n' }, { name: 'c' })), local);
  });

  it('the node selector of an allocation matches only the chosen node if a device sets bindsToNode', () => {
    assert.deepEqual(selectorOf(sliceOf('fabric', { allNodes: true }, { name: 'a', bindsToNode: true })), local);
  });

  it('allocates devices with binding conditions only if there are not enough devices without conditions', () => {
    const waiting = sliceOf(
      'a',
      { allNodes: true },
      { name: 'slow', bindingConditions: ['c'], bindingFailureConditions: ['f'] },
    );
    const ready = sliceOf('b', { allNodes: true }, { name: 'fast' });
    const names = (count: number) => allocate([waiting, ready], count).devices?.results?.map(({ device }) => device);
    assert.deepEqual(names(1), ['fast']);
    assert.deepEqual(names(2), ['fast', 'slow']);
  });
});
