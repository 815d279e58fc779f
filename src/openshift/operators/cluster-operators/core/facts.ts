/** Probe results from which the conditions of ClusterOperators are computed. */
import type { HostReport } from '../../../../api/kinds/nodes/nodes/host-report.ts';

/** Age from which a probe result is ignored. */
export const MAX_AGE_MS = 30_000;

export interface HostFact {
  readonly name: string;
  readonly master: boolean;
  readonly report: HostReport | undefined;
  /** Time since the last observed renewal of the host's Lease; infinite if no renewal was observed. */
  readonly ageMs: number;
}

/** Last result of a probe that runs on the leading master. */
export type Probed<T> =
  | { readonly state: 'value'; readonly value: T; readonly ageMs: number }
  | { readonly state: 'failed'; readonly message: string; readonly ageMs: number }
  /** The cluster does not have the component that is probed. */
  | { readonly state: 'absent' }
  | { readonly state: 'none' };

export interface EtcdFact {
  readonly quorum: boolean;
  /** Name of the member that leads; empty if there is no leader. */
  readonly leader: string;
  readonly members: readonly {
    readonly name: string;
    readonly state: 'ok' | 'not-started' | 'unreachable';
    readonly learner: boolean;
    readonly errors: readonly string[];
  }[];
}

export interface LeaseFact {
  readonly holder: string;
  /** Time since the last observed renewal. */
  readonly renewedMs: number;
  readonly durationMs: number;
}

export interface PoolFact {
  readonly name: string;
  readonly paused: boolean;
  /** Whether hosts of the pool are drained before an update. */
  readonly drains: boolean;
  readonly conditions: readonly { readonly type: string; readonly status: string; readonly message: string }[];
}

export interface StorageFact {
  /** Name of the default StorageClass. */
  readonly defaultClass: string | undefined;
  readonly provisioner: string;
  /** Whether a controller or a CSI driver serves the provisioner of the class. */
  readonly served: boolean;
}

export interface ProbeFacts {
  readonly hosts: readonly HostFact[];
  readonly etcd: Probed<EtcdFact>;
  readonly controllersLease: Probed<LeaseFact>;
  readonly schedulerLease: Probed<LeaseFact>;
  readonly pools: Probed<readonly PoolFact[]>;
  readonly storage: Probed<StorageFact>;
  /** Number of nodes with metrics in metrics.k8s.io. */
  readonly metrics: Probed<{ readonly nodes: number }>;
  /** Messages about version differences that prevent an update to the next minor version; empty if it is possible. */
  readonly skew: readonly string[];
  /** Target version of the update in progress; undefined if there is no update. */
  readonly updatingTo: string | undefined;
}
