import type { ReservedPort } from '../../api/kinds/nodes/host-ports.ts';
import type { ListeningPort, ServicePort } from '../../core/ruleset/index.ts';

export interface ProxyConfig {
  readonly nodeName: string;
  /** The ranges of services and of pods, one of each family. */
  readonly serviceCidrs: readonly string[];
  readonly clusterCidrs: readonly string[];
  /** 'auto' takes nft where it works. */
  readonly mode: 'auto' | 'nftables' | 'userspace';
  /** Ports on which this host itself listens. */
  readonly reservedPorts: readonly ReservedPort[];
  /** Addresses, ranges and networks of load balancers, at which ports of this host are not reserved. */
  readonly poolRanges?: readonly string[];
  /** Addresses of this host's links now, without those that are bound for services. */
  readonly hostAddresses: () => readonly string[];
  /** Sockets of other processes of this host; absent: none are reserved. */
  readonly listening?: ListeningPorts;
  /** Cluster IPs that the host answers itself (cluster DNS). */
  readonly hostServices?: readonly string[];
  /** Name of the nft table, so that several instances can share a machine. */
  readonly table: string;
}

export interface ListeningPorts {
  /** Sorted. Never rejects: while the sockets cannot be read, the last ones stay. */
  read(): Promise<readonly ListeningPort[]>;
}

/** One way of forwarding. `sync` brings the node to the services; when it throws, it is called again. */
export interface ProxyMode {
  readonly name: 'nftables' | 'userspace';
  /** Before anything is known of services: what an earlier process left behind must not take the host's own ports. */
  prepare(): Promise<void>;
  /** These services, by `namespace/name`, have these ports from the next `sync` on; without ports: none. */
  change(services: ReadonlyMap<string, readonly ServicePort[]>): void;
  /** The next `sync` compares with the kernel first and restores what others have removed. */
  verify?(): void;
  /** `all` has the ports of all services. */
  sync(all: () => readonly ServicePort[]): Promise<void>;
  /** Removes everything it made. */
  stop(): Promise<void>;
}
