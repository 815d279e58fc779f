import type { ServicePort } from '../../core/ruleset/index.ts';

export interface ProxyConfig {
  readonly nodeName: string;
  readonly serviceCidr: string;
  readonly clusterCidr: string;
  /** 'auto' takes nft where it works. */
  readonly mode: 'auto' | 'nftables' | 'userspace';
  /** Name of the nft table, so that several instances can share a machine. */
  readonly table: string;
}

/** One way of forwarding. `sync` brings the node to `ports`; it throws when it could not, and is then called again. */
export interface ProxyMode {
  readonly name: 'nftables' | 'userspace';
  sync(ports: readonly ServicePort[]): Promise<void>;
  /** Removes everything it made. */
  stop(): Promise<void>;
}
