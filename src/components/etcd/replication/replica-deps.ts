/** What a replica requires, and the state machine that it drives. */
import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type {
  ConfState,
  Entry,
  Message,
  NodeId,
  RaftConfig,
  SnapshotMeta,
  StoredState,
} from '../../../core/raft/index.ts';
import type { LogBatch, StoredHardState, StoreLog } from '../port.ts';

export interface ReplicaTiming {
  readonly tickMs: number;
  readonly electionTicks: number;
  readonly heartbeatTicks: number;
  /** The election timeout adapts to measured times; `electionTicks` is the initial value. */
  readonly adapts?: boolean;
}

/** State of the machine that is persisted together with raft's own. */
export type Rider = Pick<LogBatch, 'discards' | 'applied' | 'base' | 'reserved'>;

/** The state machine that the replica drives. All methods are called synchronously and in log order; none may throw. */
export interface ReplicatedMachine {
  /** Entries that are committed and on this disk. `conf`: the configuration after the last of them, if it changed. */
  apply(entries: readonly Entry[], conf: ConfState | undefined): void;
  leadershipChanged(leads: boolean, leader: NodeId | undefined, term: number): void;
  /** Called for each write; undefined: nothing to add. */
  rider(): Rider | undefined;
  riderWritten(rider: Rider): void;
  diskFull(full: boolean): void;
  /** `to` needs a snapshot of at least `index`; report progress with `snapshotProgress` and `snapshotDone`. */
  streamSnapshot(to: NodeId, index: number): void;
  /** Replaces the store by the snapshot that has been received. */
  install(snapshot: SnapshotMeta, hardState: StoredHardState): Promise<void>;
}

export interface ReplicaDeps {
  readonly config: Omit<RaftConfig, 'electionTicks' | 'heartbeatTicks'>;
  readonly timing: ReplicaTiming;
  readonly stored: StoredState;
  readonly storage: StoreLog;
  readonly clock: Clock;
  readonly log: Log;
  /** Best effort; messages to one member arrive in order or not at all. */
  readonly send: (messages: readonly Message[]) => void;
  readonly machine: ReplicatedMachine;
  /** Unique for every start of the process. */
  readonly runId: string;
  /** The log contradicts the cluster's log: this member has to stop. */
  readonly onFatal: (error: Error) => void;
  /** How long applying a batch of entries took, in milliseconds. */
  readonly onApplied?: (ms: number) => void;
  /** A ReadIndex request failed. */
  readonly onReadFailed?: () => void;
  /** A heartbeat was sent this many milliseconds late. */
  readonly onLateHeartbeat?: (to: NodeId, ms: number) => void;
  /** How long a disk commit took, in milliseconds. */
  readonly onWritten?: (ms: number) => void;
}
