/**
 * Names of addresses: reverse zones and the names of pods. Sources: RFC 1035 §3.5, RFC 3596 §2.5, Kubernetes DNS 1.1.
 */
import { canonicalAddress, groupsOf, ipFamilyOf, isInNetwork, textOf } from '../../../base/addresses/addresses.ts';

export const REVERSE_V4 = 'in-addr.arpa';
export const REVERSE_V6 = 'ip6.arpa';

/** Name of the PTR record of a valid address. */
export function reverseName(address: string): string {
  if (ipFamilyOf(address) === 4) return `${address.split('.').reverse().join('.')}.${REVERSE_V4}`;
  const digits = groupsOf(address)
    .map((group) => group.toString(16).padStart(4, '0'))
    .join('');
  return `${[...digits].reverse().join('.')}.${REVERSE_V6}`;
}

/** Address whose PTR record has this name; undefined for other names. */
export function addressOfReverse(name: string): string | undefined {
  if (name.endsWith(`.${REVERSE_V4}`)) {
    const address = name
      .slice(0, -REVERSE_V4.length - 1)
      .split('.')
      .reverse()
      .join('.');
    return ipFamilyOf(address) === 4 ? address : undefined;
  }
  if (!name.endsWith(`.${REVERSE_V6}`)) return undefined;
  const digits = name.slice(0, -REVERSE_V6.length - 1).split('.');
  if (digits.length !== 32 || digits.some((digit) => !/^[0-9a-f]$/.test(digit))) return undefined;
  const text = digits.reverse().join('');
  return textOf(Array.from({ length: 8 }, (_, index) => Number.parseInt(text.slice(index * 4, index * 4 + 4), 16)));
}

/** DNS label of an address, such as `10-1-2-3` or `fd00--5`. */
export function addressLabel(address: string): string {
  const label = address.replaceAll(/[.:]/g, '-');
  // A DNS label must not begin or end with "-".
  return `${label.startsWith('-') ? '0' : ''}${label}${label.endsWith('-') ? '0' : ''}`;
}

/** Address in the first label of a pod's name, such as `1-2-3-4.ns.pod.zone`; undefined for other labels. */
export function addressOfLabel(label: string): string | undefined {
  const dotted = label.replaceAll('-', '.');
  if (ipFamilyOf(dotted) === 4) return dotted;
  return canonicalAddress(label.replaceAll('-', ':'));
}

export const isInAny = (address: string, networks: readonly string[]): boolean =>
  networks.some((network) => isInNetwork(address, network));
