/** Selects the addresses by which other hosts reach this one. */

import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { isInPool, parseAddressPool } from '../../base/addresses/address-pool.ts';
import { isInNetwork } from '../../base/addresses/addresses.ts';
import { addressKind } from '../../base/addresses/destinations.ts';

export interface HostAddresses {
  /** Link of the IPv4 default route with the lowest metric. */
  readonly defaultRouteLink: string | undefined;
  readonly defaultRouteLink6?: string | undefined;
  /** Global addresses, IPv4 first. */
  readonly byLink: readonly { readonly link: string; readonly address: string }[];
  /** The pod CIDR that an earlier start of this host used. */
  readonly podCidr?: string | undefined;
}

export async function hostAddresses(): Promise<HostAddresses> {
  const byLink: { link: string; address: string; family: string }[] = [];
  for (const [link, addresses] of Object.entries(networkInterfaces())) {
    for (const { address, family, internal } of addresses ?? []) {
      if (!internal && addressKind(address) === 'unicast') byLink.push({ link, address, family });
    }
  }
  byLink.sort((left, right) => left.family.localeCompare(right.family));
  return {
    defaultRouteLink: defaultRouteLink(await readFile('/proc/net/route', 'utf8').catch(() => '')),
    defaultRouteLink6: defaultRouteLink6(await readFile('/proc/net/ipv6_route', 'utf8').catch(() => '')),
    byLink,
  };
}

export interface AddressChoice {
  readonly ipFamilies: ReadonlyArray<'IPv4' | 'IPv6'>;
  /** `node.ip` of the bootstrap file. No other address of its family is selected. */
  readonly given: string | undefined;
  /** Links of the pod network. Their addresses are not selected. */
  readonly podLinks: ReadonlySet<string>;
  /** Ranges of service addresses. This host may have service addresses on a link, but they are never selected. */
  readonly serviceCidrs: readonly string[];
  /**
   * Shared addresses or ranges, of the masters or of load balancers, that can move from this host to another. They are
   * not selected.
   */
  readonly shared?: readonly string[];
  /** Previously selected addresses, which are kept as long as the host has them. */
  readonly previous?: readonly string[];
}

/** Names of the links that the pod network creates on the host itself. */
export const podLinksOf = (bridge: string, tunnelNames: Readonly<Record<4 | 6, string>>): ReadonlySet<string> =>
  new Set([bridge, `${bridge.slice(0, 11)}-svc`, `${bridge.slice(0, 11)}-dns`, ...Object.values(tunnelNames)]);

export const ownAddresses = (
  { byLink }: HostAddresses,
  { podLinks, serviceCidrs, shared = [] }: Pick<AddressChoice, 'podLinks' | 'serviceCidrs' | 'shared'>,
): HostAddresses['byLink'] => {
  const moving = parseAddressPool(shared);
  return byLink.filter(
    ({ link, address }) =>
      !podLinks.has(link) && !isInPool(moving, address) && !serviceCidrs.some((cidr) => isInNetwork(address, cidr)),
  );
};

/**
 * Selects one address per family of the cluster, the primary family first. A host without an address of these families
 * uses an address of the other family. Empty if the host has no address.
 */
export function chooseNodeIps(host: HostAddresses, choice: AddressChoice): string[] {
  const { given, previous = [] } = choice;
  const own = ownAddresses(host, choice);
  const of = (family: 'IPv4' | 'IPv6'): string | undefined => {
    const isOne = (address: string): boolean => familyOf(address) === family;
    if (given !== undefined && isOne(given)) return given;
    const found = own.filter(({ address }) => isOne(address));
    const preferred = family === 'IPv6' ? host.defaultRouteLink6 : host.defaultRouteLink;
    return (
      previous.find((address) => isOne(address) && found.some((each) => each.address === address)) ??
      found.find(({ link }) => link === preferred)?.address ??
      found[0]?.address
    );
  };
  const wanted =
    given === undefined || choice.ipFamilies.includes(familyOf(given)) ? choice.ipFamilies : [familyOf(given)];
  const chosen = wanted.map(of).filter((address) => address !== undefined);
  if (chosen.length > 0) return chosen;
  const [other] = (['IPv4', 'IPv6'] as const).map(of).filter((address) => address !== undefined);
  return other === undefined ? [] : [other];
}

const familyOf = (address: string): 'IPv4' | 'IPv6' => (address.includes(':') ? 'IPv6' : 'IPv4');

/** The link of the default route with the lowest metric. Source: proc_net(5), /proc/net/route. */
export function defaultRouteLink(routes: string): string | undefined {
  const defaults = routes
    .split('\n')
    .slice(1)
    .map((line) => line.split(/\s+/))
    .filter((fields) => fields[1] === '00000000' && fields[7] === '00000000')
    .sort((left, right) => Number(left[6]) - Number(right[6]));
  return defaults[0]?.[0];
}

/**
 * Like `defaultRouteLink`, for /proc/net/ipv6_route. Routes on `lo` are ignored, because the kernel lists unreachable
 * routes there.
 */
export function defaultRouteLink6(routes: string): string | undefined {
  const defaults = routes
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => /^0{32}$/.test(fields[0] ?? '') && fields[1] === '00' && fields[9] !== 'lo')
    .sort((left, right) => Number.parseInt(left[5] ?? '', 16) - Number.parseInt(right[5] ?? '', 16));
  return defaults[0]?.[9];
}
