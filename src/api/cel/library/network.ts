/** IP addresses and networks as numbers. Source: Go's net/netip, RFC 5952 (IPv6 text form). */
import { ipFamilyOf } from '../../../base/addresses/addresses.ts';

export interface Ip {
  readonly family: 4 | 6;
  readonly bits: bigint;
  /** Canonical form. */
  readonly text: string;
}

export interface Cidr {
  readonly family: 4 | 6;
  readonly address: Ip;
  readonly bits: bigint;
  readonly prefix: number;
  readonly hostBits: number;
  readonly text: string;
  masked(): Cidr;
}

export function isIp(text: string): boolean {
  return parseIp(text) !== undefined;
}

/** Parses an IP address. As upstream, IPv4-mapped IPv6 addresses are rejected. */
export function parseIp(text: string): Ip | undefined {
  const family = ipFamilyOf(text);
  if (family === 0) return undefined;
  const bits = family === 4 ? bitsOf4(text) : bitsOf6(text);
  if (family === 6 && bits >> 32n === 0xffffn) return undefined;
  return { family, bits, text: family === 4 ? formatV4(bits) : formatV6(bits) };
}

export function parseCidr(text: string): Cidr | undefined {
  const slash = text.lastIndexOf('/');
  const address = slash < 0 ? undefined : parseIp(text.slice(0, slash));
  const length = text.slice(slash + 1);
  if (address === undefined || !/^(?:0|[1-9]\d{0,2})$/.test(length)) return undefined;
  const width = address.family === 4 ? 32 : 128;
  return Number(length) > width ? undefined : network(address, Number(length));
}

function network(address: Ip, prefix: number): Cidr {
  const { family, bits } = address;
  const hostBits = (family === 4 ? 32 : 128) - prefix;
  return {
    family,
    address,
    bits,
    prefix,
    hostBits,
    text: `${address.text}/${prefix}`,
    masked() {
      const cut = (bits >> BigInt(hostBits)) << BigInt(hostBits);
      return network({ family, bits: cut, text: family === 4 ? formatV4(cut) : formatV6(cut) }, prefix);
    },
  };
}

function bitsOf4(text: string): bigint {
  return text.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n);
}

function bitsOf6(text: string): bigint {
  const expand = (half: string): number[] =>
    half === ''
      ? []
      : half.split(':').flatMap((part) => {
          if (!part.includes('.')) return [Number.parseInt(part, 16)];
          const bits = Number(bitsOf4(part));
          return [Math.floor(bits / 65536), bits % 65536];
        });
  const [head = '', tail] = text.split('::');
  const front = expand(head);
  const back = tail === undefined ? [] : expand(tail);
  const groups = [...front, ...new Array<number>(8 - front.length - back.length).fill(0), ...back];
  return groups.reduce((bits, group) => (bits << 16n) | BigInt(group), 0n);
}

function formatV4(bits: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => String((bits >> shift) & 255n)).join('.');
}

function formatV6(bits: bigint): string {
  const groups = Array.from({ length: 8 }, (_, index) => Number((bits >> BigInt((7 - index) * 16)) & 0xffffn));
  let best = { start: -1, length: 1 };
  for (let start = 0; start < 8; start++) {
    let length = 0;
    while (groups[start + length] === 0) length += 1;
    if (length > best.length) best = { start, length };
  }
  const hex = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(':');
  if (best.start < 0) return hex(groups);
  return `${hex(groups.slice(0, best.start))}::${hex(groups.slice(best.start + best.length))}`;
}
