/** What revisions of the control plane are planned from. Times are milliseconds since the epoch. */

/** Why a revision failed on a host. */
export interface Failure {
  readonly revision: number;
  readonly atMs: number;
  readonly reason: string;
  /** Failures of this revision on this host. */
  readonly count: number;
  /** How often the host went back to an older revision because of it. */
  readonly fallbacks: number;
  readonly errors: readonly string[];
}

/** The last revision that a host has tried, with the inputs that it had. */
export interface Attempt {
  readonly revision: number;
  /** Of the input files, without the settings of the cluster. */
  readonly digest: string;
  /** Settings of the cluster that were laid over the files. */
  readonly overlay: string;
  readonly reason: string;
}

/** What a master publishes about one component. */
export interface NodeReport {
  /** The revision that runs; 0: none yet. */
  readonly current: number;
  /** Of the files as they are now. */
  readonly digest: string;
  /** Names of the files that differ from those of `attempt`. */
  readonly changed: readonly string[];
  readonly attempt: Attempt;
  readonly isHealthy: boolean;
  readonly failure?: Failure;
}

export interface MasterFacts {
  readonly name: string;
  /** Undefined: the node is Ready. */
  readonly notReadySinceMs?: number;
  /** Undefined: the host has not published anything yet. */
  readonly report?: NodeReport;
}

export type RevisionPhase = 'InProgress' | 'Succeeded' | 'Failed' | 'Abandoned';

export interface Revision {
  readonly revision: number;
  readonly phase: RevisionPhase;
  readonly reason: string;
  readonly overlay: string;
}

/** As in the status of the operator's object. */
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
  /** False: nothing is installed; new revisions are made all the same. */
  readonly isManaged: boolean;
  /** Settings of the cluster as the operator's object has them now. */
  readonly overlay: string;
  /** 0: there is none yet. */
  readonly latest: number;
  readonly revisions: readonly Revision[];
  readonly progress: readonly NodeProgress[];
  readonly masters: readonly MasterFacts[];
  readonly keepFailed: number;
  readonly keepSucceeded: number;
}

export interface RevisionPlan {
  readonly latest: number;
  /** In the order of their numbers; a new one is among them. */
  readonly revisions: readonly Revision[];
  readonly progress: readonly NodeProgress[];
  /** Numbers of the revisions that are deleted. */
  readonly pruned: readonly number[];
  /** When the plan changes by itself; undefined: never. */
  readonly wakeAtMs?: number;
}
