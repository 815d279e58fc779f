/** What the composition hands to the controllers; nothing here is looked up elsewhere. */
import type { Clock, RandomSource } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient, EventRecorder, InformerFactory, LeaderElector } from '../../client/types.ts';
import type { CertificateSigner } from '../../core/reconcile/certificatesigningrequest/port.ts';
import type { ClusterFacts } from '../../core/reconcile/cluster-info/plan.ts';
import type { RouterFacts } from './ingress-router-port.ts';
import type { MachineConfigFacts } from './machine-config-port.ts';
import type { MachineProvisioner } from './machines-port.ts';
import type { CatalogFiles } from './olm/catalog-port.ts';

export interface ControllersDeps {
  readonly client: ApiClient;
  /** Shared with the scheduler in the same process. Started by whichever component starts first. */
  readonly informers: InformerFactory;
  readonly recorder: EventRecorder;
  /** For the Lease `kube-system/kube-controller-manager` (see `CONTROLLERS_LEASE`). */
  readonly elector: LeaderElector;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly signer: CertificateSigner;
  /** Signs the claims of a service account's token with the cluster's key; returns a JSON web token. */
  readonly signServiceAccountToken: (claims: Readonly<Record<string, string>>) => string;
  /** PEM bundle published as `kube-root-ca.crt` in each namespace. */
  readonly rootCaPem: string;
  /** What joining hosts learn from the cluster; undefined: no host can join. */
  readonly clusterFacts?: ClusterFacts;
  /** Undefined: routes are served by another installation. */
  readonly router?: RouterFacts;
  readonly machineConfig: MachineConfigFacts;
  /** Undefined: hosts are not installed from here. */
  readonly machines?: MachineProvisioner;
  /** Undefined: catalogs of operators are read from ConfigMaps alone. */
  readonly catalogFiles?: CatalogFiles;
  readonly options?: Partial<ControllersOptions>;
}

/** Defaults are upstream's, with OKD's networks. Durations are milliseconds. */
export interface ControllersOptions {
  /** A range, or one of each family as `10.128.0.0/14,fd01::/48`, the primary one first. */
  readonly clusterCidr: string;
  /** Of IPv4 pod ranges. */
  readonly nodeCidrMaskSize: number;
  readonly nodeCidrMaskSizeIpv6: number;
  /** A range or two. Never given to pods, should they overlap. */
  readonly serviceCidr: string;
  readonly allocateNodeCidrs: boolean;
  readonly nodeMonitorGracePeriodMs: number;
  readonly nodeStartupGracePeriodMs: number;
  readonly terminatedPodThreshold: number;
  /** The longest life of a signed certificate. */
  readonly certificateLifetimeMs: number;
  /**
   * How long a range of service addresses stays when it is deleted: every API server has stopped giving out its
   * addresses by then.
   */
  readonly serviceCidrGraceMs: number;
  /** How long a namespace terminates before its content is deleted: API servers of all hosts reject creates by then. */
  readonly namespaceGraceMs: number;
  /** Whether the storage class of the embedded local provisioner is created at start. */
  readonly localVolumes: boolean;
  /** Ranges of the addresses of load balancers; empty: those of the nodes. */
  readonly loadBalancerAddresses: readonly string[];
  /** Interval of imports of tags with `importPolicy.scheduled`. Default 15 minutes, as upstream's. */
  readonly scheduledImportMs?: number;
  /** Whether service accounts have secrets with tokens, as under OpenShift. */
  readonly accountSecrets: boolean;
  /** Whether each node has a pod `machine-config-daemon`, as under OpenShift. */
  readonly daemonPods: boolean;
  /** Names of controllers that shall not run. */
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
