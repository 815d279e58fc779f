/** Address families and pod network of a cluster, from the bootstrap file. */
import { CodedError } from '../../base/errors.ts';
import type { BootstrapFile } from './bootstrap.ts';
import type { Settings } from './settings.ts';

type IpFamily = 'IPv4' | 'IPv6';

/** Default ranges, as in OKD. The IPv6 ranges are unique local addresses (RFC 4193). */
const CLUSTER: Readonly<Record<IpFamily, string>> = { IPv4: '10.128.0.0/14', IPv6: 'fd01::/48' };
const SERVICES: Readonly<Record<IpFamily, string>> = { IPv4: '172.30.0.0/16', IPv6: 'fd02::/112' };

const familyOf = (cidr: string): IpFamily => (cidr.includes(':') ? 'IPv6' : 'IPv4');

export interface Families {
  /** The primary family first. */
  readonly ipFamilies: readonly IpFamily[];
  readonly clusterCidrs: readonly string[];
  readonly serviceCidrs: readonly string[];
}

export interface GivenFamilies {
  readonly ipFamilies?: readonly IpFamily[] | undefined;
  /** One range, or two ranges of different families separated by a comma. */
  readonly clusterCIDR?: string;
  readonly serviceCIDR?: string;
}

/**
 * Determines the families from `ipFamilies`, or without it from the given ranges; missing ranges have defaults. Throws
 * CodedError 'bad-config' for invalid `ipFamilies` and for a range of a family that the cluster does not have.
 */
export function familiesOf({ ipFamilies: wanted, ...ranges }: GivenFamilies, bootstrapFile: string): Families {
  const clusters = ranges.clusterCIDR?.split(',') ?? [];
  const services = ranges.serviceCIDR?.split(',') ?? [];
  const named = clusters.length > 0 ? clusters : services;
  const ipFamilies = wanted ?? (named.length === 0 ? (['IPv4'] as const) : named.map(familyOf));
  if (ipFamilies.length === 0 || new Set(ipFamilies).size < ipFamilies.length) {
    throw new CodedError('bad-config', `${bootstrapFile}: ipFamilies: name IPv4, IPv6 or both, each once`);
  }
  const choose = (field: string, given: readonly string[], defaults: Readonly<Record<IpFamily, string>>): string[] => {
    const stray = given.find((range) => !ipFamilies.includes(familyOf(range)));
    if (stray !== undefined) {
      throw new CodedError(
        'bad-config',
        `${bootstrapFile}: network.${field}: ${stray} has an address family that the cluster does not use; add ${familyOf(stray)} to ipFamilies or remove it`,
      );
    }
    return ipFamilies.map((family) => given.find((range) => familyOf(range) === family) ?? defaults[family]);
  };
  return {
    ipFamilies,
    clusterCidrs: choose('clusterCIDR', clusters, CLUSTER),
    serviceCidrs: choose('serviceCIDR', services, SERVICES),
  };
}

/**
 * Protocol number (`proto` in iproute2) of the routes of the pod network. No routing daemon in iproute2's list uses it.
 */
const ROUTE_PROTOCOL = 178;

/**
 * `suffix`: suffix of the name of an instance that shares its machine with other instances. Throws CodedError
 * 'bad-config'.
 */
export function podNetworkOf(
  file: BootstrapFile | undefined,
  bridge: string,
  suffix: string | undefined,
  bootstrapFile: string,
): Settings['podNetwork'] {
  const { backend = 'auto', encrypt = false, mtu } = file?.podNetwork ?? {};
  if (encrypt) {
    throw new CodedError(
      'bad-config',
      `${bootstrapFile}: podNetwork.encrypt: this version cannot set WireGuard keys; remove the field, or encrypt the traffic between the hosts outside of hyperedge`,
    );
  }
  return {
    backend,
    encrypt,
    mtu,
    routeProtocol: suffix === undefined ? ROUTE_PROTOCOL : 193 + (Number.parseInt(suffix, 16) % 60),
    tunnelNames: { 4: `${bridge.slice(0, 11)}-vx4`, 6: `${bridge.slice(0, 11)}-vx6` },
  };
}
