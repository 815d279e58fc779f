/**
 * Addresses and ports that services may claim or forward to. Users of a namespace write its services; addresses and
 * ports of hosts, loopback, link-local addresses and other services' cluster IPs are not available to them
 * (CVE-2020-8554, CVE-2020-8558).
 */
import type { Node } from '../../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import { isHostPort, type ReservedPort, reservedPortsOf } from '../../../api/kinds/nodes/nodes/host-ports.ts';
import { ownAddressesOf } from '../../../api/kinds/nodes/nodes/own-addresses.ts';
import { isInPool, parseAddressPool } from '../../../base/addresses/address-pool.ts';
import { isInNetwork } from '../../../base/addresses/addresses.ts';
import { addressKind } from '../../../base/addresses/destinations.ts';

type Protocol = ReservedPort['protocol'];

export interface ClusterAddresses {
  /** Addresses of this host's links, without those that the proxy binds for services. */
  readonly hostAddresses: readonly string[];
  /** Ports on which this host listens. */
  readonly reservedPorts: readonly ReservedPort[];
  /** Listening sockets of other processes on this host. */
  readonly listening?: readonly ListeningPort[];
  /** Addresses of load balancers. They belong to services, even if a node reports them as its own. */
  readonly poolRanges?: readonly string[];
  /** All known nodes, with their addresses and reserved ports. */
  readonly nodes: readonly Node[];
  /** Slices of the service API_SERVICE: the API servers of all hosts. */
  readonly apiServers: readonly EndpointSlice[];
  /** All cluster IPs in use. The set is read at each check, so its later changes count. */
  readonly clusterIps: Pick<ReadonlySet<string>, 'has'>;
  /** Ranges of services and of pods, one per family. */
  readonly serviceCidrs: readonly string[];
  readonly clusterCidrs: readonly string[];
}

/** A listening socket. Without an address it listens on every address of the host. */
export interface ListeningPort extends ReservedPort {
  readonly address?: string;
}

/**
 * Checks of addresses and ports. Each check returns the reason for a rejection, or undefined if allowed. All addresses
 * are canonical.
 */
export interface Destinations {
  /**
   * `assigned` is true if a load balancer assigned the address in the service's status, and false if the service's
   * author specified the address.
   */
  externalIp(ip: string, protocol: Protocol, port: number, assigned: boolean): string | undefined;
  clusterIp(ip: string, protocol: Protocol, port: number): string | undefined;
  nodePort(protocol: Protocol, port: number): string | undefined;
  /** `service`: `namespace/name` of the service that forwards to the endpoint. */
  endpoint(ip: string, protocol: Protocol, port: number, service: string): string | undefined;
  /**
   * Addresses of hosts, and reserved ports as `address protocol port`: the inputs of the checks that change at run
   * time.
   */
  readonly facts: ReadonlySet<string>;
}

export const API_SERVICE = 'default/kubernetes';
/** Services of the control plane may forward to its own ports, for example to collect metrics. */
const CONTROL_PLANE_NAMESPACE = 'kube-system/';
const OWN_PORT = 'a port of the control plane or of a node';
const HOST_PORT = 'a port that services cannot use on addresses of hosts';

export function destinationsOf(cluster: ClusterAddresses): Destinations {
  const { clusterIps, reservedPorts } = cluster;
  const isService = (ip: string): boolean => cluster.serviceCidrs.some((each) => isInNetwork(ip, each));
  const isPod = (ip: string): boolean => cluster.clusterCidrs.some((each) => isInNetwork(ip, each));
  const pool = parseAddressPool(cluster.poolRanges ?? []);
  const links = new Set<string>(cluster.hostAddresses.filter((ip) => !isService(ip)));
  const hosts = new Set<string>(links);
  const own = new Set<string>();
  const reserve = (ip: string, ports: readonly ReservedPort[]): void => {
    for (const { protocol, port } of ports) own.add(`${ip} ${protocol} ${port}`);
  };
  for (const ip of links) reserve(ip, reservedPorts);
  for (const socket of cluster.listening ?? [])
    for (const ip of socket.address === undefined ? links : [socket.address]) reserve(ip, [socket]);
  for (const node of cluster.nodes) {
    const { internal, external } = ownAddressesOf(node);
    for (const address of [...internal, ...external]) {
      // A node's report cannot reserve addresses in the ranges of services and pods.
      if (isService(address) || isInPool(pool, address) || (isPod(address) && !links.has(address))) continue;
      hosts.add(address);
      reserve(address, reservedPortsOf(node));
    }
  }
  for (const { ports = [], endpoints = [] } of cluster.apiServers) {
    const endpointPorts = ports.map(({ protocol = 'TCP', port = 0 }) => ({ protocol: protocol as Protocol, port }));
    for (const ip of endpoints.flatMap(({ addresses }) => addresses)) reserve(ip, endpointPorts);
  }
  const isOwn = (ip: string, protocol: Protocol, port: number): boolean => own.has(`${ip} ${protocol} ${port}`);
  const special = (ip: string): string | undefined =>
    addressKind(ip) !== 'unicast' ? 'a loopback, link-local, multicast or reserved address' : undefined;
  return {
    facts: new Set([...hosts, ...own]),
    externalIp: (ip, protocol, port, assigned) => {
      if (isService(ip) || clusterIps.has(ip)) return 'a cluster IP';
      if (isOwn(ip, protocol, port)) return OWN_PORT;
      const isHost = hosts.has(ip) && !isInPool(pool, ip);
      if ((isHost || (!assigned && !isInPool(pool, ip))) && isHostPort({ protocol, port })) return HOST_PORT;
      // An address of another node is not captured, so its traffic is forwarded to that node. Otherwise a node that
      // reports a false address could redirect the traffic of any address to pods.
      if (assigned && isHost && !links.has(ip)) return 'an address of another node';
      if (isPod(ip) && !hosts.has(ip)) return 'an address of a pod';
      return special(ip);
    },
    clusterIp: (ip, protocol, port) => {
      if (isService(ip)) return undefined;
      if (hosts.has(ip)) return 'an address of a node';
      return isOwn(ip, protocol, port) ? OWN_PORT : special(ip);
    },
    nodePort: (protocol, port) =>
      reservedPorts.some((each) => each.protocol === protocol && each.port === port) ? OWN_PORT : undefined,
    endpoint: (ip, protocol, port, service) => {
      const isControlPlane = service === API_SERVICE || service.startsWith(CONTROL_PLANE_NAMESPACE);
      return !isControlPlane && isOwn(ip, protocol, port) ? OWN_PORT : special(ip);
    },
  };
}

/** Addresses for which `before` and `after` may return different results. */
export function changedAddresses(before: Destinations, after: Destinations): ReadonlySet<string> {
  const changed = new Set<string>();
  for (const [left, right] of [
    [before.facts, after.facts],
    [after.facts, before.facts],
  ] as const)
    for (const fact of left) if (!right.has(fact)) changed.add(fact.split(' ', 1)[0] ?? '');
  return changed;
}
