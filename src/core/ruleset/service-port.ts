import type { ReservedPort } from '../../api/kinds/nodes/host-ports.ts';

/** A back end of a service port. */
export interface ProxyEndpoint {
  readonly ip: string;
  readonly port: number;
  /** On this node. */
  readonly local: boolean;
  /** Not known to be on another node: a pod's connection to its own service may come back to it here. */
  readonly hairpin: boolean;
}

export type Protocol = ReservedPort['protocol'];

export type Family = 4 | 6;

/** One port of one service, in one address family, as this node forwards it. */
export interface ServicePort {
  /** `namespace/name:port/protocol`. */
  readonly id: string;
  readonly family: Family;
  readonly protocol: Protocol;
  readonly port: number;
  readonly clusterIps: readonly string[];
  /** Addresses of load balancers included. */
  readonly externalIps: readonly string[];
  /** Addresses of load balancers that only `sourceRanges` may use; empty: no restriction. */
  readonly restrictedIps: readonly string[];
  /** loadBalancerSourceRanges of this family. */
  readonly sourceRanges: readonly string[];
  /** 0: none. */
  readonly nodePort: number;
  /** Seconds of ClientIP affinity; 0: none. */
  readonly affinitySeconds: number;
  /**
   * Keep the client's address and use only this node's back ends for traffic from outside (externalTrafficPolicy:
   * Local).
   */
  readonly externalLocal: boolean;
  /** For traffic to the cluster IP. */
  readonly endpoints: readonly ProxyEndpoint[];
  /** For traffic to external addresses and node ports; differs from `endpoints` under `Local` policies only. */
  readonly externalEndpoints: readonly ProxyEndpoint[];
}
