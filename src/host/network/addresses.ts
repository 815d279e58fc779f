/** Addresses in configured ranges. The caller has validated the syntax of the ranges. */

import { addressAt, type Network, networkText, parseNetwork, widthOf } from '../../base/addresses/networks.ts';
import { CodedError } from '../../base/errors.ts';

/** The address at offset `index` of a range: `nthAddress('172.30.0.0/16', 1)` is 172.30.0.1. */
export function nthAddress(cidr: string, index: number): string {
  return addressAt(rangeOf(cidr), index);
}

/** The first subnet of a range. Its addresses have `hostBits` host bits. */
export function firstSubnet(cidr: string, hostBits: number): string {
  const { family, base, bits } = rangeOf(cidr);
  const width = widthOf(family);
  if (width - bits < hostBits)
    throw new CodedError('bad-config', `${cidr} is too small for ranges of ${hostBits} bits`);
  return networkText({ family, base, bits: width - hostBits });
}

function rangeOf(cidr: string): Network {
  const range = parseNetwork(cidr);
  if (range === undefined) throw new CodedError('bad-config', `${cidr} is not an address range such as 172.30.0.0/16`);
  return range;
}
