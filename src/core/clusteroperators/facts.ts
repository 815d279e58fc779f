/** What probes have found: the input of the conditions of ClusterOperators. */
import type { HostReport } from '../../api/kinds/nodes/host-report.ts';

/** Results older than this are not used. */
export const MAX_AGE_MS = 30_000;

export interface HostFact {
  readonly name: string;
  readonly master: boolean;
  readonly report: HostReport | undefined;
  /** Since the host has shown that it runs: its lease was renewed, or its Node object was. */
  readonly ageMs: number;
}

/** The last result of a probe of the leading master. */
export type Probed<T> =
  | { readonly state: 'value'; readonly value: T; readonly ageMs: number }
  | { readonly state: 'failed'; readonly message: string; readonly ageMs: number }
  /** What is probed is not in this cluster. */
  | { readonly state: 'absent' }
  /** No result yet. */
  | { readonly state: 'none' };

export interface EtcdFact {
  readonly quorum: boolean;
  /** Name of the member that leads; empty: none. */
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
  /** Since the last renewal that was seen. */
  readonly renewedMs: number;
  readonly durationMs: number;
}

export interface PoolFact {
  readonly name: string;
  readonly paused: boolean;
  /** Its hosts are drained before an update. */
  readonly drains: boolean;
  readonly conditions: readonly { readonly type: string; readonly status: string; readonly message: string }[];
}

export interface StorageFact {
  /** The default StorageClass. */
  readonly defaultClass: string | undefined;
  readonly provisioner: string;
  /** A controller or a CSI driver of that name is there. */
  readonly served: boolean;
}

export interface ProbeFacts {
  readonly hosts: readonly HostFact[];
  readonly etcd: Probed<EtcdFact>;
  readonly controllersLease: Probed<LeaseFact>;
  readonly schedulerLease: Probed<LeaseFact>;
  readonly pools: Probed<readonly PoolFact[]>;
  readonly storage: Probed<StorageFact>;
  /** Nodes that metrics.k8s.io has numbers of. */
  readonly metrics: Probed<{ readonly nodes: number }>;
  /** Why minor versions cannot be updated: versions that differ too much; empty: they can. */
  readonly skew: readonly string[];
  /** An update is under way to this version. */
  readonly updatingTo: string | undefined;
}
