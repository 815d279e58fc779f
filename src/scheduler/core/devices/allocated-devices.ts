/**
 * Index of the devices that are allocated to claims, exclusively or as shares. Source:
 * pkg/scheduler/framework/plugins/dynamicresources.
 */
import type { AllocationResult } from '../../../api/devices/types.ts';
import { tryParseQuantity } from '../../../base/quantity.ts';
import type { Allocation } from './device-results.ts';
import type { Consumed } from './shared-capacity.ts';

interface Holders {
  alone: number;
  shares: number;
  readonly consumed: Map<string, bigint>;
}

export class AllocatedDevices {
  readonly #resultsOf = new Map<string, readonly AllocationResult[]>();
  readonly #devices = new Map<string, Holders>();

  isAllocated(driver: string, pool: string, device: string): boolean {
    return (this.#devices.get(`${driver}/${pool}/${device}`)?.alone ?? 0) > 0;
  }

  /** Amounts consumed by all shares of the device, in billionths; undefined if no claim has a share. */
  consumed(driver: string, pool: string, device: string): Consumed | undefined {
    const holders = this.#devices.get(`${driver}/${pool}/${device}`);
    return holders === undefined || holders.shares === 0 ? undefined : holders.consumed;
  }

  /**
   * Replaces the allocation of the claim with this UID; undefined removes it. Devices allocated with administrative
   * access are not counted.
   */
  set(uid: string, allocation: Allocation | undefined): void {
    for (const each of this.#resultsOf.get(uid) ?? []) this.#count(each, -1);
    const results = (allocation?.devices?.results ?? []).filter(({ adminAccess }) => adminAccess !== true);
    for (const each of results) this.#count(each, 1);
    if (results.length === 0) this.#resultsOf.delete(uid);
    else this.#resultsOf.set(uid, results);
  }

  #count({ driver, pool, device, shareID, consumedCapacity = {} }: AllocationResult, sign: 1 | -1): void {
    const key = `${driver}/${pool}/${device}`;
    const holders = this.#devices.get(key) ?? { alone: 0, shares: 0, consumed: new Map<string, bigint>() };
    this.#devices.set(key, holders);
    if (shareID === undefined) holders.alone += sign;
    else {
      holders.shares += sign;
      for (const [name, amount] of Object.entries(consumedCapacity)) {
        const nanos = (tryParseQuantity(amount)?.nanos ?? 0n) * BigInt(sign);
        holders.consumed.set(name, (holders.consumed.get(name) ?? 0n) + nanos);
      }
    }
    if (holders.alone <= 0 && holders.shares <= 0) this.#devices.delete(key);
  }
}
