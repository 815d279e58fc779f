/** Arithmetic on address ranges of both families. Sources: RFC 4632, RFC 4291. */
import { groupsOf, ipFamilyOf, textOf } from './addresses.ts';
import { CodedError } from './errors.ts';

/** A range of addresses: `10.128.2.0/23`, `fd00:10::/64`. */
export interface Network {
  readonly family: 4 | 6;
  /** The lowest address; bits after the prefix are zero. */
  readonly base: bigint;
  /** Length of the prefix. */
  readonly bits: number;
}

export const widthOf = (family: 4 | 6): number => (family === 4 ? 32 : 128);

/** The address as a number; undefined for what is no address. */
export function addressValue(text: string): { readonly family: 4 | 6; readonly value: bigint } | undefined {
  const family = ipFamilyOf(text);
  if (family === 0) return undefined;
  return { family, value: groupsOf(text).reduce((value, group) => value * 65_536n + BigInt(group), 0n) };
}

/** The canonical text of an address. */
export function addressText(value: bigint, family: 4 | 6): string {
  const count = family === 4 ? 2 : 8;
  return textOf(Array.from({ length: count }, (_, at) => Number((value >> BigInt((count - 1 - at) * 16)) & 0xffffn)));
}

/** Undefined for what is no range. Bits after the prefix are ignored. */
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

/** Number of addresses. */
export const sizeOf = ({ family, bits }: Network): bigint => 1n << BigInt(widthOf(family) - bits);

/** The address `index` places into the range. Fails with 'bad-config' when the range is smaller. */
export function addressAt(network: Network, index: number): string {
  if (BigInt(index) >= sizeOf(network))
    throw new CodedError('bad-config', `${networkText(network)} has no address ${index}`);
  return addressText(network.base + BigInt(index), network.family);
}

/** A comma-separated list of ranges as upstream's --cluster-cidr; undefined for what is none. */
export function parseNetworks(list: string): Network[] | undefined {
  const found = list.split(',').map(parseNetwork);
  return found.some((each) => each === undefined) ? undefined : found.filter((each) => each !== undefined);
}
