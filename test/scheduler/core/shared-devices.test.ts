/** Devices that several claims share (KEP-5075). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Device, RequestPolicy, ResourceClaim, ResourceSlice } from '../../../src/api/devices/types.ts';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import { AllocatedDevices } from '../../../src/scheduler/core/devices/allocated-devices.ts';
import type { Allocation } from '../../../src/scheduler/core/devices/device-results.ts';
import { allocateDevices } from '../../../src/scheduler/core/devices/devices.ts';

const node: Node = { metadata: { name: 'n' } };

interface Wanted {
  readonly amount?: string | number | undefined;
  readonly count?: number;
  readonly mode?: string;
  readonly admin?: boolean;
}

const claim = (...wanted: readonly Wanted[]): ResourceClaim => ({
  spec: {
    devices: {
      requests: wanted.map(({ amount, count = 1, mode = 'ExactCount', admin }, index) => ({
        name: `r${index}`,
        exactly: {
          deviceClassName: 'any',
          allocationMode: mode,
          ...(mode === 'All' ? {} : { count }),
          ...(admin === true ? { adminAccess: true } : {}),
          ...(amount === undefined ? {} : { capacity: { requests: { memory: amount } } }),
        },
      })),
    },
  },
});

const shared = (name: string, value: string | number, requestPolicy?: RequestPolicy): Device => ({
  name,
  allowMultipleAllocations: true,
  capacity: { memory: { value, ...(requestPolicy === undefined ? {} : { requestPolicy }) } },
});

class Cluster {
  readonly #slices: ResourceSlice[];
  readonly #allocated = new AllocatedDevices();
  #claims = 0;

  constructor(devices: Device[], spec: ResourceSlice['spec'] = {}) {
    const pool = { name: 'p', generation: 1, resourceSliceCount: 1 };
    this.#slices = [{ spec: { driver: 'd', nodeName: 'n', pool, devices, ...spec } }];
  }

  allocate(...claims: readonly ResourceClaim[]): readonly Allocation[] | string {
    let shares = 0;
    const allocations = allocateDevices(
      claims,
      { node, requested: new Map() },
      {
        claim: () => undefined,
        classOfResource: () => undefined,
        extendedClaimOf: () => undefined,
        hasFailedBinding: () => false,
        deviceClass: () => ({ spec: {} }),
        slicesFor: () => this.#slices,
        isAllocated: (driver, pool, device) => this.#allocated.isAllocated(driver, pool, device),
        consumed: (driver, pool, device) => this.#allocated.consumed(driver, pool, device),
        withheld: () => undefined,
        newShareId: () => {
          shares += 1;
          return `share-${shares}`;
        },
        isPending: () => false,
        meets: () => true,
      },
    );
    if (typeof allocations === 'string') return allocations;
    for (const each of allocations) {
      this.#claims += 1;
      this.#allocated.set(`claim-${this.#claims}`, each);
    }
    return allocations;
  }

  /** Allocates and returns the devices with their consumed amounts, or the reason for a failure. */
  take(...claims: readonly ResourceClaim[]): string {
    const allocations = this.allocate(...claims);
    if (typeof allocations === 'string') return allocations;
    const results = allocations.flatMap((each) => each.devices?.results ?? []);
    return results.map(({ device, consumedCapacity }) => `${device}:${consumedCapacity?.['memory'] ?? '-'}`).join(' ');
  }

  release(claimNumber: number): void {
    this.#allocated.set(`claim-${claimNumber}`, undefined);
  }
}

describe('device shared by several claims', () => {
  it('allocates shares of a device until its capacity is exhausted, and again after a share is released', () => {
    const cluster = new Cluster([shared('gpu', '40Gi')]);
    assert.equal(cluster.take(claim({ amount: '16Gi' })), 'gpu:16Gi');
    assert.equal(cluster.take(claim({ amount: '20Gi' })), 'gpu:20Gi');
    assert.match(cluster.take(claim({ amount: '5Gi' })), /1 of 1 matching devices in use/);
    assert.equal(cluster.take(claim({ amount: '4Gi' })), 'gpu:4Gi');
    cluster.release(1);
    assert.equal(cluster.take(claim({ amount: '16Gi' })), 'gpu:16Gi');
  });

  it('each share of a device has a unique share ID, and one request uses a device at most once', () => {
    const cluster = new Cluster([shared('a', 4), shared('b', 4)]);
    const [first] = cluster.allocate(claim({ amount: 1, count: 2 }, { amount: 1 })) as readonly Allocation[];
    const results = first?.devices?.results ?? [];
    assert.deepEqual(
      results.map(({ device }) => device),
      ['a', 'b', 'a'],
    );
    assert.equal(new Set(results.map(({ shareID }) => shareID)).size, 3);
    assert.match(cluster.take(claim({ amount: 1, count: 3 })), /cannot allocate/);
  });

  it('a request without an amount consumes the whole capacity of a shared device', () => {
    const cluster = new Cluster([shared('a', 4)]);
    assert.equal(cluster.take(claim({})), 'a:4');
    assert.match(cluster.take(claim({ amount: 1 })), /in use/);
  });

  it("rounds a requested amount up to one that the device's request policy permits", () => {
    const range: RequestPolicy = { default: '2Gi', validRange: { min: '2Gi', max: '8Gi', step: '2Gi' } };
    const take = (policy: RequestPolicy, amount?: string) =>
      new Cluster([shared('a', '40Gi', policy)]).take(claim({ amount }));
    assert.equal(take(range), 'a:2Gi');
    assert.equal(take(range, '1'), 'a:2Gi');
    assert.equal(take(range, '3Gi'), 'a:4Gi');
    assert.equal(take(range, '8Gi'), 'a:8Gi');
    assert.match(take(range, '9Gi'), /no device matches/);
    const values: RequestPolicy = { default: '10Gi', validValues: ['5Gi', '10Gi', '20Gi'] };
    assert.equal(take(values), 'a:10Gi');
    assert.equal(take(values, '6Gi'), 'a:10Gi');
    assert.equal(take(values, '1'), 'a:5Gi');
    assert.match(take(values, '21Gi'), /no device matches/);
  });

  it('does not select a shared device without the requested capacity', () => {
    const other: Device = { name: 'b', allowMultipleAllocations: true, capacity: { cores: { value: 4 } } };
    assert.match(new Cluster([other]).take(claim({ amount: 1 })), /no device matches/);
    assert.equal(new Cluster([other, shared('a', 4)]).take(claim({ amount: 1 })), 'a:1');
  });

  it('a device with several shares consumes the counters of its pool once', () => {
    const consumesCounters = [{ counterSet: 'board', counters: { slots: { value: '1' } } }];
    const cluster = new Cluster(
      [
        { ...shared('a', 4), consumesCounters },
        { name: 'b', consumesCounters },
      ],
      {
        sharedCounters: [{ name: 'board', counters: { slots: { value: '1' } } }],
      },
    );
    assert.equal(cluster.take(claim({ amount: 1 }), claim({ amount: 1 })), 'a:1 a:1');
    assert.equal(cluster.take(claim({ amount: 2 })), 'a:2');
    assert.match(cluster.take(claim({})), /cannot allocate/);
    cluster.release(1);
    cluster.release(2);
    cluster.release(3);
    assert.equal(cluster.take(claim({ count: 1 })), 'a:4');
  });

  it('does not share an exclusively allocated device, and allocation mode All takes devices with free capacity', () => {
    const alone = new Cluster([{ name: 'a', capacity: { memory: { value: 4 } } }]);
    assert.match(alone.take(claim({ amount: 5 })), /no device matches/);
    assert.equal(alone.take(claim({ amount: 1 })), 'a:-');
    assert.match(alone.take(claim({ amount: 1 })), /in use/);
    const both = new Cluster([shared('a', 4), shared('b', 8)]);
    assert.equal(both.take(claim({ amount: 4 })), 'a:4');
    assert.equal(both.take(claim({ amount: 4, mode: 'All' })), 'b:4');
  });

  it('administrative access consumes no capacity of a shared device', () => {
    const cluster = new Cluster([shared('a', 4)]);
    assert.equal(cluster.take(claim({ admin: true })), 'a:4');
    assert.equal(cluster.take(claim({ amount: 4 })), 'a:4');
  });
});

/** Random numbers below `n` from a seed. */
function numbers(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

interface PlainDevice {
  readonly shared: boolean;
  readonly value: number;
  readonly fallback: number | undefined;
  /** Permitted amounts, ascending; undefined for any amount. */
  readonly steps: readonly number[] | undefined;
}

/** Amount that a request consumes, found by trying the permitted amounts. */
function amountOf(device: PlainDevice, wanted: number | undefined): number | undefined {
  if (wanted === undefined) return device.fallback ?? device.value;
  return device.steps === undefined ? wanted : device.steps.find((each) => each >= wanted);
}

/** Tries every assignment of devices to requests. */
function isPossible(
  devices: readonly PlainDevice[],
  requiredDevices: readonly (readonly [number | undefined, number])[],
): boolean {
  const slots = requiredDevices.flatMap(([wanted, count], required) =>
    Array.from({ length: count }, () => ({ wanted, required })),
  );
  const used = devices.map(() => ({ amount: 0, users: [] as number[] }));
  const place = (index: number): boolean => {
    const slot = slots[index];
    if (slot === undefined) return true;
    return devices.some((device, at) => {
      const here = used[at];
      const amount = amountOf(device, slot.wanted);
      if (here === undefined || amount === undefined || here.amount + amount > device.value) return false;
      if (here.users.includes(slot.required) || (!device.shared && here.users.length > 0)) return false;
      here.amount += amount;
      here.users.push(slot.required);
      const done = place(index + 1);
      here.users.pop();
      here.amount -= amount;
      return done;
    });
  };
  return place(0);
}

function randomDevice(next: (n: number) => number): [PlainDevice, Omit<Device, 'name'>] {
  const value = 1 + next(8);
  const capacity = (requestPolicy?: RequestPolicy) => ({
    allowMultipleAllocations: true,
    capacity: { memory: { value, ...(requestPolicy === undefined ? {} : { requestPolicy }) } },
  });
  const kind = next(4);
  if (kind === 0)
    return [{ shared: false, value, fallback: undefined, steps: undefined }, { capacity: { memory: { value } } }];
  if (kind === 1) return [{ shared: true, value, fallback: undefined, steps: undefined }, capacity()];
  if (kind === 2) {
    const steps = [1, 2, 3, 4, 5, 6, 7, 8].filter((each) => each <= value && (each === value || next(2) === 0));
    const fallback = steps[next(steps.length)] ?? value;
    return [{ shared: true, value, fallback, steps }, capacity({ default: fallback, validValues: steps })];
  }
  const min = 1 + next(value);
  const step = 1 + next(3);
  const max = min + step * next(1 + Math.floor((value - min) / step));
  const steps = [1, 2, 3, 4, 5, 6, 7, 8].filter((each) => each >= min && each <= max && (each - min) % step === 0);
  const fallback = steps[next(steps.length)] ?? min;
  return [{ shared: true, value, fallback, steps }, capacity({ default: fallback, validRange: { min, max, step } })];
}

describe('allocation of shared devices', () => {
  it('allocates shared devices exactly if an exhaustive search finds an allocation', () => {
    const counts = { possible: 0, impossible: 0 };
    for (let seed = 1; seed <= 3000; seed += 1) {
      const next = numbers(seed);
      const pairs = Array.from({ length: 1 + next(3) }, () => randomDevice(next));
      const plain = pairs.map(([each]) => each);
      const devices = pairs.map(([, device], at) => ({ name: `d${at}`, ...device }));
      const requiredDevices = Array.from(
        { length: 1 + next(4) },
        () => [next(4) === 0 ? undefined : 1 + next(6), 1 + next(2)] as const,
      );
      const claims = requiredDevices.map(([amount, count]) => claim({ amount, count }));
      const result = new Cluster(devices).allocate(...claims);
      const possible = isPossible(plain, requiredDevices);
      counts[possible ? 'possible' : 'impossible'] += 1;
      assert.equal(
        typeof result !== 'string',
        possible,
        `seed ${seed}: ${JSON.stringify({ devices, requiredDevices, result })}`,
      );
      if (typeof result === 'string') continue;
      const sums = devices.map(() => 0);
      for (const [index, { devices: found }] of result.entries()) {
        for (const { device, consumedCapacity, shareID } of found?.results ?? []) {
          const at = Number(device?.slice(1));
          const amount = amountOf(plain[at] as PlainDevice, requiredDevices[index]?.[0]);
          assert.equal(shareID !== undefined, plain[at]?.shared, `seed ${seed}`);
          if (shareID !== undefined) assert.equal(Number(consumedCapacity?.['memory']), amount, `seed ${seed}`);
          sums[at] = (sums[at] ?? 0) + (amount ?? Number.NaN);
        }
      }
      for (const [at, sum] of sums.entries()) assert.ok(sum <= (plain[at]?.value ?? 0), `seed ${seed}: device ${at}`);
    }
    assert.ok(counts.possible > 300 && counts.impossible > 300, JSON.stringify(counts));
  });
});
