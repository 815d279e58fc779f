import { addressValue } from '../../../../base/addresses/networks.ts';

/**
 * Name of a pod's link, unique per address and bridge and recognizable in `ip link`: for example `ve0a800005` followed
 * by a checksum of the bridge's name.
 */
export function linkName(address: string, bridge: string): string {
  let check = 0;
  for (const character of bridge) check = (check * 31 + character.charCodeAt(0)) & 0xfff;
  const value = addressValue(address)?.value ?? 0n;
  // The low bits of an IPv6 address contain the pod's number, the high ones the part of the prefix that differs between
  // nodes.
  const low = Number((value ^ (value >> 64n)) & 0xffffffffn);
  return `ve${low.toString(16).padStart(8, '0')}${check.toString(16).padStart(3, '0')}`;
}

/**
 * Names of the two ends of the forwarding probe. They have the form of pod link names, so that rules for pod links also
 * match the probe.
 */
export function probeLinks(bridge: string): readonly [string, string] {
  return [linkName('255.255.255.254', bridge), linkName('255.255.255.255', bridge)];
}
