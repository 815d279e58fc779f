/** Arithmetic on address ranges, IPv4 and IPv6. */
import { isIP } from 'node:net';
import { CodedError } from '../../base/errors.ts';

/** The address `index` places into a range: `nthAddress('172.30.0.0/16', 1)` is 172.30.0.1. */
export function nthAddress(cidr: string, index: number): string {
  const { base, bits, width } = parseCidr(cidr);
  if (BigInt(index) >= 1n << BigInt(width - bits))
    throw new CodedError('bad-config', `${cidr} has no address ${index}`);
  return format(base + BigInt(index), width);
}

/** The first sub-range that leaves `hostBits` for addresses. */
export function firstSubnet(cidr: string, hostBits: number): string {
  const { base, bits, width } = parseCidr(cidr);
  if (width - bits < hostBits)
    throw new CodedError('bad-config', `${cidr} is too small for ranges of ${hostBits} bits`);
  return `${format(base, width)}/${width - hostBits}`;
}

function parseCidr(cidr: string): { base: bigint; bits: number; width: number } {
  const [address = '', length = ''] = cidr.split('/');
  const width = isIP(address) === 6 ? 128 : 32;
  const bits = Number(length);
  const host = (1n << BigInt(width - bits)) - 1n;
  return { base: parse(address, width) & ~host, bits, width };
}

function parse(address: string, width: number): bigint {
  if (width === 32) return address.split('.').reduce((value, byte) => value * 256n + BigInt(byte), 0n);
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups = [...left, ...new Array<string>(8 - left.length - right.length).fill('0'), ...right];
  return groups.reduce((value, group) => value * 65_536n + BigInt(`0x${group}`), 0n);
}

function format(value: bigint, width: number): string {
  if (width === 32) return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 255n)).join('.');
  const groups = Array.from({ length: 8 }, (_, index) => ((value >> BigInt(112 - index * 16)) & 0xffffn).toString(16));
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}
