/**
 * Where this server may be made to connect to. Every connection that it opens for a request or an object is judged
 * here, on the address that is about to be connected to. Source: upstream's isProxyableIP, and stricter: what the
 * control plane uses itself is no destination.
 */
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import type { ServiceCidr } from '../../api/kinds/servicecidrs/index.ts';
import { AddressSet, addressKind } from '../../base/destinations.ts';
import type { WatchCache } from './watchcache/watch-cache.ts';
import { SERVICE_NAME_LABEL } from './webhooks/service-endpoints.ts';

export type AddressRule = (address: string) => boolean;

export interface DestinationsDeps {
  readonly cache: WatchCache;
  /** What other hosts reach this server by. */
  readonly advertiseAddress: string;
  /** Of this server. */
  readonly ports: readonly number[];
  /** CIDR of cluster IPs. */
  readonly serviceRange: string;
  /** The addresses of this host's links now. */
  ownAddresses(): readonly string[];
}

export const KUBELET_PORT = 10250;
/** etcd for clients and peers, gossip, controllers, scheduler: as `hyperedge run` sets them up. */
const CONTROL_PLANE_PORTS = [2379, 2380, 7946, 10257, 10259];

/** For what an administrator names by URL: webhooks, token issuers, the audit log's sink. They may be on this host. */
export const mayBeNamed: AddressRule = (address) => {
  const kind = addressKind(address);
  return kind === 'unicast' || kind === 'loopback';
};

export class Destinations {
  readonly #deps: DestinationsDeps;

  constructor(deps: DestinationsDeps) {
    this.#deps = deps;
  }

  /**
   * For pods, services and nodes that are reached for a client. Never an address of the control plane or of this host.
   */
  proxied(): AddressRule {
    const { addresses } = this.#controlPlane();
    const services = this.#services();
    return (address) => addressKind(address) === 'unicast' && !addresses.has(address) && !services.has(address);
  }

  /**
   * For the address and port that a node registers as its kubelet's, which may be this very host's. A node writes both
   * itself: were they another component's, requests would arrive there with this server's identity. `loopback`: a
   * kubelet beside a server for tests.
   */
  kubelet(port: number, loopback: boolean): AddressRule {
    return this.#beside(port, loopback, false);
  }

  /** For the end points of aggregated API servers and of webhooks that are services. */
  extension(port: number): AddressRule {
    return this.#beside(port, true, true);
  }

  /** Hosts of the control plane are destinations, its ports there are not. */
  #beside(port: number, loopback: boolean, refusesKubelet: boolean): AddressRule {
    const { addresses, ports } = this.#controlPlane();
    const services = this.#services();
    const reserved = ports.has(port) || (refusesKubelet && port === KUBELET_PORT);
    return (address) => {
      const kind = addressKind(address);
      if (kind === 'loopback') return loopback && !reserved;
      return kind === 'unicast' && !services.has(address) && !(reserved && addresses.has(address));
    };
  }

  #controlPlane(): { readonly addresses: AddressSet; readonly ports: ReadonlySet<number> } {
    const { cache, advertiseAddress, ports: own, ownAddresses } = this.#deps;
    const addresses = new Set([advertiseAddress, ...ownAddresses()]);
    const ports = new Set([...own, ...CONTROL_PLANE_PORTS]);
    for (const slice of cache.kind('endpointslices').list('default')) {
      const parsed = slice.shared<EndpointSlice>();
      if (parsed.metadata?.labels?.[SERVICE_NAME_LABEL] !== 'kubernetes') continue;
      for (const endpoint of parsed.endpoints ?? []) for (const address of endpoint.addresses) addresses.add(address);
      for (const each of parsed.ports ?? []) if (each.port !== undefined) ports.add(each.port);
    }
    return { addresses: new AddressSet(addresses), ports };
  }

  /** Cluster IPs lead wherever the rules of the host send them, the API server's own among them. */
  #services(): AddressSet {
    const ranges = this.#deps.serviceRange.split(',');
    for (const object of this.#deps.cache.kind('servicecidrs'))
      ranges.push(...(object.shared<ServiceCidr>().spec?.cidrs ?? []));
    return new AddressSet(ranges);
  }
}
