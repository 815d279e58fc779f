/** Contents of a service table as data: chains, sets and the elements of its maps. */
import type { ReservedPort } from '../../../api/kinds/nodes/nodes/host-ports.ts';
import type { Family } from './service-port.ts';

/**
 * Part of a table: a chain with its rules (one per line), a set with its timeout in seconds, or an element of a map
 * with its data ('' for an element of a set).
 */
export interface Item {
  readonly place: 'chains' | 'sets' | MapName;
  readonly key: string;
  readonly value: string;
}

/** Contents of the table: keys and values by place. */
export type NftState = ReadonlyMap<Item['place'], ReadonlyMap<string, string>>;

export const ADDRESS_KEYS = ['firewall_ips', 'service_ips', 'no_endpoint_ips'] as const;
export const PORT_KEYS = ['service_nodeports', 'no_endpoint_nodeports'] as const;
/** Maps and sets with elements. */
export const MAP_NAMES = [
  ...(['udp_zones', 'udp_port_zones', 'endpoints', 'nodeport_endpoints', 'hairpin'] as const),
  ...ADDRESS_KEYS,
  ...PORT_KEYS,
] as const;
export type MapName = (typeof MAP_NAMES)[number];

/** nft keywords and addresses that differ between the families. */
export const WORDS: Readonly<Record<Family, { ip: string; address: string; loopback: string }>> = {
  4: { ip: 'ip', address: 'ipv4_addr', loopback: '127.0.0.0/8' },
  6: { ip: 'ip6', address: 'ipv6_addr', loopback: '::1' },
};
/** Mark of packets whose source address is rewritten to this node's address. The bit is the same as kube-proxy's. */
export const MASQUERADE_MARK = '0x4000';

export interface NftOptions {
  readonly table: string;
  readonly family: Family;
  /**
   * Pod range of the family. Connections to cluster IPs from sources outside the range are masqueraded, so that
   * responses return through this node. If undefined, all connections to cluster IPs are masqueraded.
   */
  readonly clusterCidr: string | undefined;
  /**
   * Ports on which the host itself listens. Traffic to these ports at the host's own addresses is never looked up in
   * the maps.
   */
  readonly reservedPorts: readonly ReservedPort[];
  /**
   * Ranges of the family that belong to load balancers, in nft notation. Traffic to these ranges is always looked up.
   */
  readonly poolRanges?: readonly string[];
}

export const emptyNftState: NftState = new Map();
