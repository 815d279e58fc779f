import type { ReservedPort } from '../../api/kinds/nodes/nodes/host-ports.ts';
import type { Steps } from '../../base/concurrency/steps.ts';
import type { ListeningPort, ServicePort } from './core/index.ts';

export interface ProxyConfig {
  readonly nodeName: string;
  /** Ranges of services and pods, one per address family. */
  readonly serviceCidrs: readonly string[];
  readonly clusterCidrs: readonly string[];
  /** 'auto' selects nftables if nft works on this host, otherwise userspace. */
  readonly mode: 'auto' | 'nftables' | 'userspace';
  /** Ports on which this host itself listens. */
  readonly reservedPorts: readonly ReservedPort[];
  /** Addresses, ranges and networks of load balancers, on which the host's ports are not reserved. */
  readonly poolRanges?: readonly string[];
  /** Current addresses of this host's links, except those bound for services. */
  readonly hostAddresses: () => readonly string[];
  /** Sockets of other processes of this host. If absent, no ports are reserved for other processes. */
  readonly listening?: ListeningPorts;
  /** Cluster IPs that the host serves itself (cluster DNS). */
  readonly hostServices?: readonly string[];
  /** Name of the nft table. Several instances on one machine need different names. */
  readonly table: string;
}

export interface ListeningPorts {
  /** Returns the sockets, sorted. Never rejects: while the sockets cannot be read, the last result is returned. */
  read(): Promise<readonly ListeningPort[]>;
}

/**
 * A way to forward service traffic. `sync` configures the node for the services and is called again after it throws.
 */
export interface ProxyMode {
  readonly name: 'nftables' | 'userspace';
  /** Called before the services are known. Removes leftovers of an earlier process that block the host's own ports. */
  prepare(): Promise<void>;
  /**
   * Sets the ports of these services, by `namespace/name`, for the next `sync`. Services without ports are removed. No
   * other method except `verify` may be called before the last step.
   */
  change(services: ReadonlyMap<string, readonly ServicePort[]>): Steps<void>;
  /**
   * The next `sync` compares the rules with the kernel's first and restores removed ones. It replaces the tables in
   * `damaged` (`FAMILY NAME`) in any case.
   */
  verify?(damaged: ReadonlySet<string>): void;
  /** `all` returns the ports of all services. */
  sync(all: () => readonly ServicePort[]): Promise<void>;
  /** Removes all kernel objects and listeners that the mode created. */
  stop(): Promise<void>;
}
