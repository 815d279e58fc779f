/**
 * Counters that devices of a pool share, such as partitions of one board. Every allocated device consumes a part of the
 * counters. Source: KEP-4815; k8s.io/dynamic-resource-allocation/structured.
 */
import type { Device, ResourceSlice } from '../../../api/devices/types.ts';
import { tryParseQuantity } from '../../../base/quantity.ts';

/** Amounts that a device consumes, in billionths. `counter` is the path of pool, counter set and counter. */
type Demand = readonly (readonly [counter: string, amount: bigint])[];

export class SharedCounters {
  readonly #left = new Map<string, bigint>();
  readonly #demands = new WeakMap<Device, Demand>();

  /**
   * @param slices All slices of a complete pool.
   * @param isAllocated Whether the device is already allocated.
   */
  addPool(key: string, slices: readonly ResourceSlice[], isAllocated: (device: string) => boolean): void {
    for (const { spec } of slices) {
      for (const { name = '', counters = {} } of spec?.sharedCounters ?? [])
        for (const [counter, each] of Object.entries(counters))
          this.#left.set(`${key}/${name}/${counter}`, amountOf(each));
    }
    for (const { spec } of slices) {
      for (const device of spec?.devices ?? []) {
        if ((device.consumesCounters ?? []).length === 0) continue;
        this.#demands.set(device, demandOf(key, device));
        if (isAllocated(device.name ?? '')) this.take(device);
      }
    }
  }

  /**
   * Whether the remaining amounts suffice for the device. False if the pool lacks a counter that the device consumes.
   */
  hasRoom(device: Device): boolean {
    const demand = this.#demands.get(device) ?? [];
    return demand.every(([counter, amount]) => (this.#left.get(counter) ?? -1n) >= amount);
  }

  take(device: Device): void {
    this.#change(device, -1n);
  }

  release(device: Device): void {
    this.#change(device, 1n);
  }

  #change(device: Device, sign: bigint): void {
    for (const [counter, amount] of this.#demands.get(device) ?? []) {
      const left = this.#left.get(counter);
      if (left !== undefined) this.#left.set(counter, left + sign * amount);
    }
  }
}

function demandOf(pool: string, { consumesCounters = [] }: Device): Demand {
  const sums = new Map<string, bigint>();
  for (const { counterSet = '', counters = {} } of consumesCounters) {
    for (const [counter, each] of Object.entries(counters)) {
      const key = `${pool}/${counterSet}/${counter}`;
      sums.set(key, (sums.get(key) ?? 0n) + amountOf(each));
    }
  }
  return [...sums];
}

function amountOf(counter: unknown): bigint {
  const { value } = counter as { readonly value?: string | number };
  return tryParseQuantity(value)?.nanos ?? 0n;
}
