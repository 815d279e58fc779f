/** Inputs and results of planning control plane revisions. Times are milliseconds since the epoch. */

/** Failure of a revision on a host. */
export interface Failure {
  readonly revision: number;
  readonly atMs: number;
  readonly reason: string;
  /** Number of failures of this revision on this host. */
  readonly count: number;
  /** Number of times the host returned to an older revision because this revision failed. */
  readonly fallbacks: number;
  readonly errors: readonly string[];
}

/** The last revision that a host has tried, with its inputs. */
export interface Attempt {
  readonly revision: number;
  /** Digest of the input files, without the cluster's settings. */
  readonly digest: string;
  /** Settings of the cluster that override the files. */
  readonly overlay: string;
  readonly reason: string;
}

/** Report of a master about one component. */
export interface NodeReport {
  /** The running revision; 0 if there is none yet. */
  readonly current: number;
  /** Digest of the host's current input files. */
  readonly digest: string;
  /** Names of the input files that have changed since `attempt`. */
  readonly changed: readonly string[];
  readonly attempt: Attempt;
  readonly isHealthy: boolean;
  readonly failure?: Failure;
}

export interface MasterFacts {
  readonly name: string;
  /** Time at which the node became NotReady. Undefined if the node is Ready. */
  readonly notReadySinceMs?: number;
  /** Undefined if the host has not reported yet. */
  readonly report?: NodeReport;
}

export type RevisionPhase = 'InProgress' | 'Succeeded' | 'Failed' | 'Abandoned';

export interface Revision {
  readonly revision: number;
  readonly phase: RevisionPhase;
  readonly reason: string;
  readonly overlay: string;
}

/** Progress of a node, as in the status of the operator's object. */
export interface NodeProgress {
  readonly nodeName: string;
  readonly currentRevision: number;
  readonly targetRevision: number;
  readonly lastFailedRevision: number;
  readonly lastFailedTimeMs: number;
  readonly lastFailedReason: string;
  readonly lastFailedCount: number;
  readonly lastFallbackCount: number;
  readonly errors: readonly string[];
}

export interface RevisionState {
  /** If false, no revision is installed, but new revisions are still created. */
  readonly isManaged: boolean;
  /** Current settings of the cluster in the operator's object. */
  readonly overlay: string;
  /** Number of the latest revision; 0 if there is none yet. */
  readonly latest: number;
  readonly revisions: readonly Revision[];
  readonly progress: readonly NodeProgress[];
  readonly masters: readonly MasterFacts[];
  readonly keepFailed: number;
  readonly keepSucceeded: number;
}

export interface RevisionPlan {
  readonly latest: number;
  /** Sorted by number, including a new revision. */
  readonly revisions: readonly Revision[];
  readonly progress: readonly NodeProgress[];
  /** Numbers of the revisions to delete. */
  readonly pruned: readonly number[];
  /** Time at which the plan may change without a further event, if any. */
  readonly wakeAtMs?: number;
}
