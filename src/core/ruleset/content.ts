/** What a service table holds, as data: chains, sets and the elements of its maps. */
import type { ReservedPort } from '../../api/kinds/nodes/host-ports.ts';
import type { Family } from './service-port.ts';

/**
 * Part of a table: a chain with its rules (one a line), a set with its timeout in seconds, or an element of a map with
 * its data ('': of a set).
 */
export interface Item {
  readonly place: 'chains' | 'sets' | MapName;
  readonly key: string;
  readonly value: string;
}

/** Content of the table: each place's keys with their values. */
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

/** How the families differ. */
export const WORDS: Readonly<Record<Family, { ip: string; address: string; loopback: string }>> = {
  4: { ip: 'ip', address: 'ipv4_addr', loopback: '127.0.0.0/8' },
  6: { ip: 'ip6', address: 'ipv6_addr', loopback: '::1' },
};
/** Marks packets that leave with this node's address; the bit that kube-proxy uses. */
export const MASQUERADE_MARK = '0x4000';

export interface NftOptions {
  readonly table: string;
  readonly family: Family;
  /**
   * Pods' range of the family. Sources outside it that use a cluster IP are masqueraded, so that answers come back
   * through this node; undefined: all are.
   */
  readonly clusterCidr: string | undefined;
  /** Ports on which the host itself listens: at its own addresses they are never looked up. */
  readonly reservedPorts: readonly ReservedPort[];
  /** Ranges of the family that belong to load balancers, as nft writes them: there they are looked up all the same. */
  readonly poolRanges?: readonly string[];
}

export const emptyNftState: NftState = new Map();
