/**
 * Capacities of devices: computes the amounts that a request consumes, and what remains of devices that several claims
 * share. Source: KEP-5075; k8s.io/dynamic-resource-allocation/structured.
 */
import type { Amount, Device, DeviceCapacity, RequestPolicy } from '../../../api/devices/types.ts';
import { compareQuantity, type Quantity, quantityOf, tryParseQuantity } from '../../../base/quantity.ts';

/** Amounts that a request consumes, by name of the capacity. */
export type Consumption = ReadonlyMap<string, Quantity>;
/** Amounts that claims consume of a device, in billionths, by name of the capacity. */
export type Consumed = ReadonlyMap<string, bigint>;

const NANO = 1_000_000_000n;
const ZERO: Quantity = quantityOf(0);

const amountOf = (given: Amount | undefined): Quantity => tryParseQuantity(given) ?? ZERO;

/** Amount in whole units, rounded up. */
const units = ({ nanos }: Quantity): bigint => nanos / NANO + (nanos % NANO > 0n ? 1n : 0n);

/**
 * Amounts that the requests consume; undefined if the device lacks a requested capacity or its policy rejects the
 * amount.
 */
export function consumptionOf(device: Device, requests: Readonly<Record<string, Amount>>): Consumption | undefined {
  const capacities = device.capacity ?? {};
  if (Object.keys(requests).some((name) => !Object.hasOwn(capacities, name))) return undefined;
  const consumption = new Map<string, Quantity>();
  for (const [name, capacity] of Object.entries(capacities)) {
    const requested = Object.hasOwn(requests, name) ? amountOf(requests[name]) : undefined;
    const amount = roundedUp(requested, capacity);
    if (!isPermitted(amount, capacity.requestPolicy)) return undefined;
    consumption.set(name, amount);
  }
  return consumption;
}

function roundedUp(requested: Quantity | undefined, { value, requestPolicy }: DeviceCapacity): Quantity {
  if (requested === undefined) return amountOf(requestPolicy?.default ?? value);
  const { validRange, validValues = [] } = requestPolicy ?? {};
  if (validRange?.min !== undefined) {
    const min = amountOf(validRange.min);
    if (compareQuantity(requested, min) < 0) return min;
    const step = units(amountOf(validRange.step));
    if (step <= 0n) return requested;
    const above = units(requested) - units(min);
    const steps = above / step + (above % step > 0n ? 1n : 0n);
    return quantityOf(units(min) + step * steps, 'BinarySI');
  }
  return validValues.map(amountOf).find((value) => compareQuantity(requested, value) <= 0) ?? requested;
}

function isPermitted(amount: Quantity, policy: RequestPolicy | undefined): boolean {
  const { validRange, validValues = [] } = policy ?? {};
  if (validRange?.max !== undefined) return compareQuantity(amount, amountOf(validRange.max)) <= 0;
  return (
    validRange !== undefined ||
    validValues.length === 0 ||
    validValues.some((value) => compareQuantity(amount, amountOf(value)) === 0)
  );
}

interface Shared {
  readonly key: string;
  readonly device: Device;
  /** Amounts that allocated claims consume; undefined if no claim has a share. */
  readonly consumed: Consumed | undefined;
}

/** Shares taken during one allocation attempt. */
export class CapacityShares {
  readonly #allocated = new Map<string, Consumption[]>();

  isShared({ key, consumed }: Shared): boolean {
    return consumed !== undefined || (this.#allocated.get(key) ?? []).length > 0;
  }

  hasRoom({ key, device, consumed }: Shared, consumption: Consumption): boolean {
    const allocations = this.#allocated.get(key) ?? [];
    return [...consumption].every(([name, { nanos }]) => {
      const others = allocations.reduce((sum, each) => sum + (each.get(name)?.nanos ?? 0n), consumed?.get(name) ?? 0n);
      return others + nanos <= amountOf(device.capacity?.[name]?.value).nanos;
    });
  }

  take({ key }: Shared, consumption: Consumption): void {
    this.#allocated.set(key, [...(this.#allocated.get(key) ?? []), consumption]);
  }

  /** Releases the share that was taken last. */
  release({ key }: Shared): void {
    this.#allocated.get(key)?.pop();
  }
}
