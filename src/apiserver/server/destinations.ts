/**
 * Rules for the addresses to which this server may connect. They are applied to the resolved address of every
 * connection that the server opens for a request or an object. Source: upstream's isProxyableIP. Stricter than
 * upstream: addresses and ports of the control plane are rejected.
 */
import type { EndpointSlice } from '../../api/generated/discovery/v1.ts';
import type { ServiceCidr } from '../../api/kinds/network/servicecidrs/index.ts';
import { AddressSet, addressKind } from '../../base/addresses/destinations.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';
import { SERVICE_NAME_LABEL } from '../webhooks/service-endpoints.ts';

export type AddressRule = (address: string) => boolean;

export interface DestinationsDeps {
  readonly cache: WatchCache;
  /** Address by which other hosts reach this server. */
  readonly advertiseAddress: string;
  readonly ports: readonly number[];
  readonly serviceRange: string;
  /** Current addresses of this host's network interfaces. */
  ownAddresses(): readonly string[];
}

export const KUBELET_PORT = 10250;
/** Ports of etcd clients and peers, gossip, controllers and scheduler in `hyperedge run`. */
const CONTROL_PLANE_PORTS = [2379, 2380, 7946, 10257, 10259];

/**
 * Rule for servers that administrators name by a URL: webhooks, token issuers, the audit sink. They may be on this
 * host.
 */
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
   * Rule for pods, services and nodes that are proxied for a client. Rejects all addresses of the control plane and of
   * this host.
   */
  proxied(): AddressRule {
    const { addresses } = this.#controlPlane();
    const services = this.#services();
    return (address) => addressKind(address) === 'unicast' && !addresses.has(address) && !services.has(address);
  }

  /**
   * Rule for kubelets, which may be on this host. The node itself registers the address and port; a port of another
   * component is rejected, because requests would arrive there with this server's identity. `loopback` permits a
   * kubelet on a loopback address, for tests.
   */
  kubelet(port: number, loopback: boolean): AddressRule {
    return this.#exceptControlPlanePorts(port, loopback, false);
  }

  /** Rule for endpoints of aggregated API servers and of webhooks that are services. */
  extension(port: number): AddressRule {
    return this.#exceptControlPlanePorts(port, true, true);
  }

  /** Rule that permits hosts of the control plane, but not the ports of the control plane on these hosts. */
  #exceptControlPlanePorts(port: number, loopback: boolean, refusesKubelet: boolean): AddressRule {
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

  /**
   * Service addresses are rejected, because the service proxy may redirect them anywhere, including to this API server.
   */
  #services(): AddressSet {
    const ranges = this.#deps.serviceRange.split(',');
    for (const object of this.#deps.cache.kind('servicecidrs'))
      ranges.push(...(object.shared<ServiceCidr>().spec?.cidrs ?? []));
    return new AddressSet(ranges);
  }
}
