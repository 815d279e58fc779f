/** Facts that `hyperedge status` gathers about a host and its cluster, and the report that it makes of them. */
import type { CertificateFacts, Gathered, UpdateFacts } from '../doctor/port.ts';

/** Answer of the control socket of the host process, as far as the report uses it. */
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
  /** Lines about revisions of the control plane that do not start. */
  readonly failures: readonly string[];
  /** Line about the failure tolerance of the store; absent on hosts without a member. */
  readonly layout?: string;
  /** Changes of the bootstrap file since the start of the process. */
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
  /** Milliseconds in this state. */
  readonly forMs: number;
  /** 16 hexadecimal digits. */
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
  /** The newest readable file. */
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

/** A cluster operator that is unavailable or degraded. */
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

/** The host on which the command runs. */
/** Reason why the host process gives no answer. */
export type NoAnswer =
  | { readonly why: 'not-running' }
  /** systemd has no usable unit. `load` is its LoadState, such as not-found or masked. */
  | { readonly why: 'no-unit'; readonly load: string }
  /** The process exists. */
  | { readonly why: 'silent'; readonly pid: number }
  /** The process has ended with an error, and systemd starts it later or no more. */
  | { readonly why: 'unit-failed'; readonly result: string; readonly restarts: number; readonly lastError?: string };

export interface About {
  readonly nowMs: number;
  readonly root: string;
  /** Empty if the settings could not be read in time, as `nodeIp`. */
  readonly nodeName: string;
  readonly nodeIp: string;
  readonly installed: boolean;
  /** Version of the executable that makes the report. */
  readonly version: string;
  /** Absent if the host process answers. */
  readonly noAnswer?: NoAnswer;
}

/** State of a thing in the report, and its colour on a terminal. */
export type State = 'good' | 'bad' | 'warn' | 'neutral';

export interface NodeStatus {
  readonly name: string;
  /** `Ready` and `NotReady` are from the API server, the states of the gossip ring from the ring. */
  readonly health: 'Ready' | 'NotReady' | 'alive' | 'suspect' | 'dead' | 'left' | 'unknown';
  readonly reason?: string;
  readonly schedulable?: boolean;
  readonly roles: readonly string[];
  readonly kubeletVersion?: string;
  readonly release?: string;
  /** Time since the host was last seen by its Lease or by gossip. */
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
  /** Command that shows more or removes the cause. */
  readonly next: string;
}

export interface Unknown {
  readonly what: string;
  readonly why: string;
}

/** The cluster as this host sees it. Sections without facts are absent and listed in `unknown` or do not apply. */
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
