/** Facts that `hyperedge status` gathers about a host and its cluster, and the report that it creates from them. */
import type { CertificateFacts, Gathered, UpdateFacts } from '../doctor/port.ts';

/** Response of the control socket of the host process, with the fields that the report uses. */
export interface HostProcess {
  readonly pid: number;
  readonly version: string;
  readonly kubernetes: {
    readonly kubelet: string;
    readonly apiServer?: string | undefined;
    readonly skew: readonly string[];
  };
  readonly node: string;
  readonly nodeIp: string;
  readonly startedAt: string;
  readonly ready: boolean;
  readonly notReady?: string;
  readonly cgroupDriver: string;
  readonly kubeconfig: string;
  readonly components: readonly {
    readonly name: string;
    readonly state: string;
    readonly restarts: number;
    readonly startedAt: string;
    readonly pid: number;
  }[];
  /** One line for each revision of the control plane that does not start. */
  readonly failures: readonly string[];
  /** Line about the number of failures that the store tolerates; absent on hosts without a member. */
  readonly layout?: string;
  /** Fields of the bootstrap file that have changed since the process started, so that it must be restarted. */
  readonly pendingRestart?: { readonly fields: readonly string[]; readonly problem?: string };
}

export interface ApiNode {
  readonly name: string;
  readonly roles: readonly string[];
  readonly kubeletVersion: string;
  readonly ready: boolean;
  readonly reason: string;
  readonly schedulable: boolean;
  readonly pressures: readonly string[];
  /** Last renewal of the node's Lease; undefined if there is none. */
  readonly renewedMs: number | undefined;
}

export interface RingNode {
  readonly name: string;
  readonly roles: readonly string[];
  readonly version: string;
  readonly state: 'alive' | 'suspect' | 'dead' | 'left';
  /** Time since the member has been in this state, in milliseconds. */
  readonly forMs: number;
  /** Member ID in 16 hexadecimal digits; undefined if the host has no member of the store. */
  readonly memberId: string | undefined;
  readonly fsyncMs: number | undefined;
}

export interface StoreMembers {
  readonly quorum: boolean;
  readonly members: readonly {
    readonly name: string;
    readonly id: string;
    readonly role: 'leader' | 'voter' | 'learner';
    readonly state: 'ok' | 'not-started' | 'unreachable';
    readonly lag?: number;
    readonly dbBytes?: number;
    readonly errors: readonly string[];
  }[];
}

export interface Snapshots {
  readonly directory: string;
  /** Newest snapshot file that can be read; undefined if there is none. */
  readonly newest:
    | { readonly file: string; readonly takenMs: number; readonly revision: number; readonly bytes: number }
    | undefined;
  readonly problems: readonly string[];
  /** Interval of the schedule, such as `24h`; undefined if the schedule is disabled. */
  readonly every: string | undefined;
  readonly everyMs: number | undefined;
}

export interface Pool {
  readonly name: string;
  readonly machines: number;
  readonly updated: number;
  readonly unavailable: number;
  readonly paused: boolean;
  /** Message of the condition Degraded; undefined if the pool is not degraded. */
  readonly degraded: string | undefined;
}

/** Cluster operator that is unavailable or degraded. */
export interface FailingOperator {
  readonly name: string;
  readonly state: 'unavailable' | 'degraded';
  readonly message: string;
}

export interface StatusFacts {
  readonly process: HostProcess;
  readonly nodes: readonly ApiNode[];
  readonly ring: readonly RingNode[];
  readonly store: StoreMembers;
  readonly certificates: readonly CertificateFacts[];
  readonly snapshots: Snapshots;
  readonly update: UpdateFacts;
  readonly pools: readonly Pool[];
  readonly operators: readonly FailingOperator[];
}

export type SourceName = keyof StatusFacts;
export type GatheredStatus = { readonly [K in SourceName]: Gathered<StatusFacts[K]> };

/** Reason why the host process does not respond. */
export type NoAnswer =
  | { readonly why: 'not-running' }
  /** systemd has no unit that it can start. `load` is the LoadState of systemd, such as not-found or masked. */
  | { readonly why: 'no-unit'; readonly load: string }
  /** The process exists but does not respond. */
  | { readonly why: 'silent'; readonly pid: number }
  /** The process has exited with an error. systemd will start it later, or has given up. */
  | { readonly why: 'unit-failed'; readonly result: string; readonly restarts: number; readonly lastError?: string };

export interface About {
  readonly nowMs: number;
  readonly root: string;
  /** Name of the node. It is empty, as `nodeIp` is, if the settings could not be read in time. */
  readonly nodeName: string;
  readonly nodeIp: string;
  readonly installed: boolean;
  /** Version of the executable that creates the report. */
  readonly version: string;
  /** Reason why the host process does not respond; absent if it responds. */
  readonly noAnswer?: NoAnswer;
}

/** State of an item in the report, which determines its colour on a terminal. */
export type State = 'good' | 'bad' | 'warn' | 'neutral';

export interface NodeStatus {
  readonly name: string;
  /** Health of the node. `Ready` and `NotReady` are reported by the API server, the other states by the gossip ring. */
  readonly health: 'Ready' | 'NotReady' | 'alive' | 'suspect' | 'dead' | 'left' | 'unknown';
  readonly reason?: string;
  readonly schedulable?: boolean;
  readonly roles: readonly string[];
  readonly kubeletVersion?: string;
  readonly release?: string;
  /** Time since the host was last observed, by a renewal of its Lease or in the gossip ring. */
  readonly lastContactMs?: number;
  readonly from: 'api' | 'gossip' | 'host';
}

export interface MemberStatus {
  readonly name: string;
  readonly id: string;
  readonly role: 'leader' | 'voter' | 'learner';
  readonly state: 'ok' | 'not-started' | 'unreachable';
  readonly lag?: number;
  readonly fsyncMs?: number;
  readonly dbBytes?: number;
}

export interface Alarm {
  readonly severity: 'error' | 'warning';
  readonly subject: string;
  readonly message: string;
  /** Command that shows details or removes the cause. */
  readonly next: string;
}

export interface Unknown {
  readonly what: string;
  readonly why: string;
}

/**
 * State of the cluster as this host sees it. A section is absent if it does not apply to this host, or if its facts are
 * unknown. Sections with unknown facts are listed in `unknown`.
 */
export interface ClusterStatus {
  readonly time: string;
  readonly result: 'ok' | 'warning' | 'error';
  readonly nodes: readonly NodeStatus[];
  readonly members?: readonly MemberStatus[];
  readonly quorum?: boolean;
  readonly certificates?: {
    readonly count: number;
    readonly next: { readonly file: string; readonly expires: string; readonly inMs: number };
  };
  readonly snapshots?: {
    readonly directory: string;
    readonly every?: string;
    readonly newest?: {
      readonly file: string;
      readonly time: string;
      readonly ageMs: number;
      readonly revision: number;
      readonly bytes: number;
    };
  };
  readonly update?: {
    readonly current: string;
    readonly desired?: string;
    readonly available: readonly string[];
  };
  readonly pools?: readonly Pool[];
  readonly alarms: readonly Alarm[];
  readonly unknown: readonly Unknown[];
  readonly next: readonly string[];
}
