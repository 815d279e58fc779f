/** Arithmetic on IPv4 and IPv6 networks. Sources: RFC 4632, RFC 4291. */

import { CodedError } from '../errors.ts';
import { groupsOf, ipFamilyOf, textOf } from './addresses.ts';

/** A network such as `10.128.2.0/23` or `fd00:10::/64`. */
export interface Network {
  readonly family: 4 | 6;
  /** Lowest address of the network. Its host bits are zero. */
  readonly base: bigint;
  /** Prefix length. */
  readonly bits: number;
}

export const widthOf = (family: 4 | 6): number => (family === 4 ? 32 : 128);

/** The address as a number; undefined if the text is not an address. */
export function addressValue(text: string): { readonly family: 4 | 6; readonly value: bigint } | undefined {
  const family = ipFamilyOf(text);
  if (family === 0) return undefined;
  return { family, value: groupsOf(text).reduce((value, group) => value * 65_536n + BigInt(group), 0n) };
}

/** Canonical text of an address that is given as a number. */
export function addressText(value: bigint, family: 4 | 6): string {
  const count = family === 4 ? 2 : 8;
  return textOf(Array.from({ length: count }, (_, at) => Number((value >> BigInt((count - 1 - at) * 16)) & 0xffffn)));
}

/** Parses a network; undefined if the text is invalid. Host bits are set to zero. */
export function parseNetwork(text: string): Network | undefined {
  const [address = '', length = '', ...rest] = text.split('/');
  const parsed = addressValue(address);
  if (parsed === undefined || rest.length > 0 || !/^\d{1,3}$/.test(length)) return undefined;
  const { family, value } = parsed;
  const bits = Number(length);
  if (bits > widthOf(family)) return undefined;
  const host = BigInt(widthOf(family) - bits);
  return { family, base: (value >> host) << host, bits };
}

export const networkText = ({ family, base, bits }: Network): string => `${addressText(base, family)}/${bits}`;

/** Number of addresses in a network. */
export const sizeOf = ({ family, bits }: Network): bigint => 1n << BigInt(widthOf(family) - bits);

/** The address at `index` in the network. Throws CodedError 'bad-config' if the network is smaller. */
export function addressAt(network: Network, index: number): string {
  if (BigInt(index) >= sizeOf(network))
    throw new CodedError('bad-config', `${networkText(network)} has no address ${index}`);
  return addressText(network.base + BigInt(index), network.family);
}

/** Parses a comma-separated list, such as the value of upstream's --cluster-cidr; undefined if an entry is invalid. */
export function parseNetworks(list: string): Network[] | undefined {
  const found = list.split(',').map(parseNetwork);
  return found.some((each) => each === undefined) ? undefined : found.filter((each) => each !== undefined);
}
