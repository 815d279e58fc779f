/** Probe results from which the conditions of ClusterOperators are computed. */
import type { HostReport } from '../../../../api/kinds/nodes/nodes/host-report.ts';

/** Older results are ignored. */
export const MAX_AGE_MS = 30_000;

export interface HostFact {
  readonly name: string;
  readonly master: boolean;
  readonly report: HostReport | undefined;
  /** Time since the host's last sign of life: a renewal of its lease or an update of its Node. */
  readonly ageMs: number;
}

/** Last result of a probe that runs on the leading master. */
export type Probed<T> =
  | { readonly state: 'value'; readonly value: T; readonly ageMs: number }
  | { readonly state: 'failed'; readonly message: string; readonly ageMs: number }
  /** The cluster does not have the probed component. */
  | { readonly state: 'absent' }
  | { readonly state: 'none' };

export interface EtcdFact {
  readonly quorum: boolean;
  /** Name of the leader; empty if there is none. */
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
  /** Hosts of the pool are drained before an update. */
  readonly drains: boolean;
  readonly conditions: readonly { readonly type: string; readonly status: string; readonly message: string }[];
}

export interface StorageFact {
  /** Name of the default StorageClass. */
  readonly defaultClass: string | undefined;
  readonly provisioner: string;
  /** A controller or CSI driver with the provisioner's name exists. */
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
  /** Version differences that prevent an update to the next minor version; empty if it is possible. */
  readonly skew: readonly string[];
  /** Target version of an update in progress. */
  readonly updatingTo: string | undefined;
}
