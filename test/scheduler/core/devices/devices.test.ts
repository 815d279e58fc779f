/** Devices of a pool that share counters: partitions of a board (KEP-4815). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ResourceClaim, ResourceSlice } from '../../../../src/api/devices/types.ts';
import type { Node } from '../../../../src/api/generated/core/v1.ts';
import type { Allocation } from '../../../../src/scheduler/core/devices/device-results.ts';
import { allocateDevices } from '../../../../src/scheduler/core/devices/devices.ts';

const node: Node = { metadata: { name: 'n' } };
const pool = { name: 'p', generation: 1, resourceSliceCount: 2 };
const consumes = (memory: string) => [{ counterSet: 'gpu-0', counters: { memory: { value: memory } } }];
const slices: ResourceSlice[] = [
  {
    spec: {
      driver: 'd',
      nodeName: 'n',
      pool,
      sharedCounters: [{ name: 'gpu-0', counters: { memory: { value: '40Gi' } } }],
    },
  },
  {
    spec: {
      driver: 'd',
      nodeName: 'n',
      pool,
      devices: [
        { name: 'whole', consumesCounters: consumes('40Gi') },
        { name: 'half-0', consumesCounters: consumes('20Gi') },
        { name: 'half-1', consumesCounters: consumes('20Gi') },
        { name: 'quarter', consumesCounters: consumes('10Gi') },
        { name: 'lost', consumesCounters: [{ counterSet: 'none', counters: { memory: { value: '1' } } }] },
      ],
    },
  },
];

const claim = (count: number, admin = false): ResourceClaim => ({
  spec: {
    devices: {
      requests: [
        {
          name: 'r',
          exactly: {
            deviceClassName: 'any',
            allocationMode: 'ExactCount',
            count,
            ...(admin ? { adminAccess: true } : {}),
          },
        },
      ],
    },
  },
});

function allocate(claims: ResourceClaim[], used: readonly string[] = []): string[] | string {
  const result = allocateDevices(
    claims,
    { node, requested: new Map() },
    {
      claim: () => undefined,
      classOfResource: () => undefined,
      extendedClaimOf: () => undefined,
      hasFailedBinding: () => false,
      deviceClass: () => ({ spec: {} }),
      slicesFor: () => slices,
      isAllocated: (_driver, _pool, device) => used.includes(device),
      consumed: () => undefined,
      withheld: () => undefined,
      newShareId: () => '',
      isPending: () => false,
      meets: () => true,
    },
  );
  if (typeof result === 'string') return result;
  return (result as readonly Allocation[]).flatMap(
    (each) => each.devices?.results?.map(({ device }) => device ?? '') ?? [],
  );
}

describe('devices that share counters', () => {
  it('allocates devices that share a counter until the counter is exhausted', () => {
    assert.deepEqual(allocate([claim(1)]), ['whole']);
    assert.deepEqual(allocate([claim(2)]), ['half-0', 'half-1']);
    assert.deepEqual(allocate([claim(1), claim(1)]), ['half-0', 'half-1']);
    assert.match(String(allocate([claim(3)])), /cannot allocate all claims/);
  });

  it('subtracts devices of other claims from a shared counter, except those with administrative access', () => {
    assert.deepEqual(allocate([claim(1)], ['half-0']), ['half-1']);
    assert.deepEqual(allocate([claim(2)], ['quarter']), 'cannot allocate all claims');
    assert.match(String(allocate([claim(1)], ['whole'])), /cannot allocate/);
    assert.deepEqual(allocate([claim(1, true)], ['whole']), ['whole'], 'administrators take nothing');
  });
});
