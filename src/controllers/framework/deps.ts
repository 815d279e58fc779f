/** Dependencies that the composition passes to the controllers. */

import type { CertificateSigner } from '../../api/kinds/identity/certificatesigningrequests/signer-port.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import type { ApiClient, EventRecorder, InformerFactory, LeaderElector } from '../../client/types.ts';
import type { RouterFacts } from '../../network/router/controllers/ingress-router-port.ts';
import type { MachineConfigFacts } from '../../openshift/machine-config/controllers/machine-config-port.ts';
import type { MachineProvisioner } from '../../openshift/machines/machines-port.ts';
import type { CatalogFiles } from '../../openshift/operators/olm/controllers/catalog-port.ts';
import type { ClusterFacts } from '../identity/cluster-info/plan.ts';

export interface ControllersDeps {
  readonly client: ApiClient;
  /**
   * Informers that the scheduler in the same process shares. Each informer is started by the first component that
   * starts.
   */
  readonly informers: InformerFactory;
  readonly recorder: EventRecorder;
  /** Elector for the Lease `kube-system/kube-controller-manager` (see `CONTROLLERS_LEASE`). */
  readonly elector: LeaderElector;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly signer: CertificateSigner;
  /** Signs the claims of a service account's token with the cluster's key. Returns a JSON web token. */
  readonly signServiceAccountToken: (claims: Readonly<Record<string, string>>) => string;
  /** PEM bundle published as `kube-root-ca.crt` in each namespace. */
  readonly rootCaPem: string;
  /** Cluster data that is published for joining hosts. If undefined, no host can join. */
  readonly clusterFacts?: ClusterFacts;
  /** Returns the address of a node's host in the gossip ring. Undefined if this host has no gossip ring. */
  readonly ringAddress?: (nodeName: string) => string | undefined;
  /** Settings of the router; undefined when another installation serves the routes. */
  readonly router?: RouterFacts;
  readonly machineConfig: MachineConfigFacts;
  /** Provisions hosts; undefined when hosts are not installed from this cluster. */
  readonly machines?: MachineProvisioner;
  /** Operator catalogs on this host; undefined when catalogs are read from ConfigMaps only. */
  readonly catalogFiles?: CatalogFiles;
  readonly options?: Partial<ControllersOptions>;
}

/** Defaults are upstream's, with OKD's networks. Durations are milliseconds. */
export interface ControllersOptions {
  /**
   * Pod ranges of the cluster: one range, or one per address family such as `10.128.0.0/14,fd01::/48`, the primary one
   * first.
   */
  readonly clusterCidr: string;
  /** Mask size of IPv4 pod ranges. */
  readonly nodeCidrMaskSize: number;
  readonly nodeCidrMaskSizeIpv6: number;
  /** Service ranges, one or two. Their addresses are never assigned to pods, even if pod ranges overlap with them. */
  readonly serviceCidr: string;
  readonly allocateNodeCidrs: boolean;
  readonly nodeMonitorGracePeriodMs: number;
  readonly nodeStartupGracePeriodMs: number;
  readonly terminatedPodThreshold: number;
  /** Maximum lifetime of a signed certificate. */
  readonly certificateLifetimeMs: number;
  /** Delay before a deleted ServiceCIDR is removed. By then every API server has stopped allocating its addresses. */
  readonly serviceCidrGraceMs: number;
  /**
   * Delay before the content of a terminating namespace is deleted. By then the API servers of all hosts reject new
   * objects in the namespace.
   */
  readonly namespaceGraceMs: number;
  /** Whether the storage class of the embedded local provisioner is created at start. */
  readonly localVolumes: boolean;
  /** Address ranges for load balancers. If empty, services of type LoadBalancer get the addresses of the nodes. */
  readonly loadBalancerAddresses: readonly string[];
  /** Interval of imports of tags with `importPolicy.scheduled`. Default 15 minutes, as upstream's. */
  readonly scheduledImportMs?: number;
  /** Whether token secrets are created for service accounts, as in OpenShift. */
  readonly accountSecrets: boolean;
  /** Whether each node runs a pod `machine-config-daemon`, as in OpenShift. */
  readonly daemonPods: boolean;
  /** Names of disabled controllers. */
  readonly disabled: readonly string[];
}

export const DEFAULT_OPTIONS: ControllersOptions = {
  clusterCidr: '10.128.0.0/14',
  nodeCidrMaskSize: 23,
  nodeCidrMaskSizeIpv6: 64,
  serviceCidr: '172.30.0.0/16',
  allocateNodeCidrs: true,
  nodeMonitorGracePeriodMs: 40_000,
  nodeStartupGracePeriodMs: 60_000,
  terminatedPodThreshold: 12_500,
  certificateLifetimeMs: 365 * 24 * 3_600_000,
  serviceCidrGraceMs: 10_000,
  // Upstream's namespaceDeletionGracePeriod.
  namespaceGraceMs: 5_000,
  localVolumes: true,
  loadBalancerAddresses: [],
  accountSecrets: false,
  daemonPods: false,
  disabled: [],
};

export const CONTROLLERS_LEASE = { namespace: 'kube-system', name: 'kube-controller-manager' } as const;
