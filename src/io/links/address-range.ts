/** IPv4 arithmetic for one node's pod range. Pure. */
import { RuntimeError } from '../../core/podplan/port.ts';

export interface AddressRange {
  readonly cidr: string;
  readonly prefix: number;
  /** The bridge's address, first of the range. */
  readonly gateway: string;
  /** First and last address for pods, as numbers. */
  readonly first: number;
  readonly last: number;
}

/** Throws RuntimeError 'network' for what is no IPv4 range with room for a pod. */
export function parseRange(cidr: string): AddressRange {
  const match = /^(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})\/(\d{1,2})$/.exec(cidr);
  const address = match?.[1] === undefined ? undefined : toNumber(match[1]);
  const prefix = Number(match?.[2]);
  if (address === undefined || !(prefix >= 8 && prefix <= 30)) {
    throw new RuntimeError('network', `pod CIDR ${JSON.stringify(cidr)} is not an IPv4 range between /8 and /30`);
  }
  const size = 2 ** (32 - prefix);
  const network = Math.floor(address / size) * size;
  return {
    cidr: `${toText(network)}/${prefix}`,
    prefix,
    gateway: toText(network + 1),
    first: network + 2,
    last: network + size - 2,
  };
}

export function toNumber(address: string): number | undefined {
  const parts = address.split('.').map(Number);
  if (parts.length !== 4 || !parts.every((part) => Number.isInteger(part) && part >= 0 && part <= 255))
    return undefined;
  return parts.reduce((sum, part) => sum * 256 + part, 0);
}

export const toText = (address: number): string =>
  [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');

/** A locally administered MAC address that belongs to the IPv4 address, so that a reused address needs no ARP cache to expire. */
export const macFor = (address: number): string =>
  `0a:58:${[24, 16, 8, 0].map((shift) => (Math.floor(address / 2 ** shift) % 256).toString(16).padStart(2, '0')).join(':')}`;

/** The next free address after `previous`, going round; undefined when all are taken. */
export function nextFree(range: AddressRange, previous: number, taken: ReadonlySet<number>): number | undefined {
  const size = range.last - range.first + 1;
  const start = previous >= range.first && previous < range.last ? previous + 1 : range.first;
  for (let step = 0; step < size; step++) {
    const candidate = range.first + ((start - range.first + step) % size);
    if (!taken.has(candidate)) return candidate;
  }
  return undefined;
}
