/** Dependencies of a replica, and the state machine that it drives. */

import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { ConfState, Entry, Message, NodeId, RaftConfig, SnapshotMeta, StoredState } from '../core/raft/index.ts';
import type { LogBatch, StoredHardState, StoreLog } from '../disk/port.ts';

export interface ReplicaTiming {
  readonly tickMs: number;
  readonly electionTicks: number;
  readonly heartbeatTicks: number;
  /** Whether the election timeout adapts to measured times. `electionTicks` is its initial value. */
  readonly adapts?: boolean;
}

/** State of the machine that is persisted in the same write as raft's state. */
export type WrittenState = Pick<LogBatch, 'discards' | 'applied' | 'base' | 'reserved'>;

/** State machine that the replica drives. All methods are called synchronously and in log order, and must not throw. */
export interface ReplicatedMachine {
  /**
   * Applies entries that are committed and on this disk. `conf`: configuration after the last of them, if it changed.
   */
  apply(entries: readonly Entry[], conf: ConfState | undefined): void;
  leadershipChanged(leads: boolean, leader: NodeId | undefined, term: number): void;
  /** Returns the state that is persisted with the next write; undefined if there is none. Called for each write. */
  stateToWrite(): WrittenState | undefined;
  stateWritten(state: WrittenState): void;
  diskFull(full: boolean): void;
  /**
   * Starts sending `to` a snapshot of at least `index`. Progress is reported with `snapshotProgress` and
   * `snapshotDone`.
   */
  streamSnapshot(to: NodeId, index: number): void;
  /** Replaces the store with the received snapshot. */
  install(snapshot: SnapshotMeta, hardState: StoredHardState): Promise<void>;
}

export interface ReplicaDeps {
  readonly config: Omit<RaftConfig, 'electionTicks' | 'heartbeatTicks'>;
  readonly timing: ReplicaTiming;
  readonly stored: StoredState;
  readonly storage: StoreLog;
  readonly clock: Clock;
  readonly log: Log;
  /** Best effort: messages to one member arrive in order or are lost. */
  readonly send: (messages: readonly Message[]) => void;
  readonly machine: ReplicatedMachine;
  /** Unique for every start of the process. */
  readonly runId: string;
  /** Called when the log contradicts the cluster's log, so this member has to stop. */
  readonly onFatal: (error: Error) => void;
  /** Called with the duration of applying a batch of entries, in milliseconds. */
  readonly onApplied?: (ms: number) => void;
  /** Called when a ReadIndex request failed. */
  readonly onReadFailed?: () => void;
  /** Called when a heartbeat was sent this many milliseconds late. */
  readonly onLateHeartbeat?: (to: NodeId, ms: number) => void;
  /** Called with the duration of a disk commit, in milliseconds. */
  readonly onWritten?: (ms: number) => void;
}
