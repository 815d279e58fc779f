import type { ReservedPort } from '../../../api/kinds/nodes/nodes/host-ports.ts';

/** A back end of a service port. */
export interface ProxyEndpoint {
  readonly ip: string;
  readonly port: number;
  /** Whether the endpoint is on this node. */
  readonly local: boolean;
  /** Whether the endpoint may be on this node, so that a pod's connection to its own service may return to the pod. */
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
  /** External addresses, including those of load balancers. */
  readonly externalIps: readonly string[];
  /** Load balancer addresses that only accept `sourceRanges`; empty if there is no restriction. */
  readonly restrictedIps: readonly string[];
  /** The ranges of loadBalancerSourceRanges in this family. */
  readonly sourceRanges: readonly string[];
  /** Node port of the service port; 0 if there is none. */
  readonly nodePort: number;
  /** Timeout of ClientIP affinity in seconds; 0 if there is no affinity. */
  readonly affinitySeconds: number;
  /**
   * Whether external traffic keeps the client's address and uses only back ends on this node (externalTrafficPolicy:
   * Local).
   */
  readonly externalLocal: boolean;
  /** Endpoints for traffic to the cluster IP. */
  readonly endpoints: readonly ProxyEndpoint[];
  /**
   * Endpoints for traffic to external addresses and node ports. They differ from `endpoints` only under `Local`
   * policies.
   */
  readonly externalEndpoints: readonly ProxyEndpoint[];
}
