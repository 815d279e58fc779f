/** Interface of the consensus machine that a member drives. */
import type { ProgressState } from './progress.ts';
import type {
  ConfChange,
  ConfState,
  Entry,
  Message,
  NodeId,
  PeerHint,
  ReadContext,
  Ready,
  Role,
  SnapshotMeta,
} from './types.ts';

/**
 * Destination of proposals. `appended`: they are in this leader's log, to be committed or lost. `forwarded`: they were
 * sent to the leader and may be lost or appended there.
 */
export type Proposed =
  | { readonly kind: 'appended'; readonly term: number; readonly first: number; readonly last: number }
  | { readonly kind: 'forwarded'; readonly to: NodeId };

export interface MemberProgress {
  readonly match: number;
  readonly next: number;
  readonly state: ProgressState;
  readonly paused: boolean;
  readonly inflight: number;
  readonly active: boolean;
}

export interface RaftStatus {
  readonly id: NodeId;
  readonly term: number;
  readonly vote: NodeId | undefined;
  readonly role: Role;
  readonly leader: NodeId | undefined;
  readonly commit: number;
  readonly applied: number;
  readonly firstIndex: number;
  readonly lastIndex: number;
  readonly conf: ConfState;
  readonly transferTarget: NodeId | undefined;
  /** Replication progress by member. Empty unless this member is the leader. */
  readonly progress: ReadonlyMap<NodeId, MemberProgress>;
}

/**
 * One member's consensus machine (Ongaro & Ousterhout 2014, "the paper"; Ongaro's dissertation, "the thesis"). It
 * performs no I/O: inputs change its state, `ready()` returns the work to perform, `advance()` confirms that the work
 * is done. See `Ready` for the order of the work. Operating failures are `RaftError`s: the request had no effect and
 * the machine remains usable, except after `LogLost`. Any other exception is a bug, and the member must stop.
 */
export interface Raft {
  /** Handles a message from a peer whose identity the transport has verified. */
  step(message: Message): void;
  /** Advances the clock by one fixed interval. */
  tick(): void;
  /** Starts an election now, regardless of gossip and timeouts. */
  campaign(): void;
  /** Throws `NoLeader`, `NotLeader`, `Transferring`, `Overloaded`, `Removed`. */
  propose(data: readonly Uint8Array[]): Proposed;
  /**
   * Proposes a change of the configuration; only the leader can. A leader that is to be removed should first transfer
   * leadership; otherwise the other members wait for their election timeouts. Throws `NotLeader`, `Transferring`,
   * `ConfChangePending`, `BadConfChange`.
   */
  proposeConfChange(change: ConfChange): { readonly index: number; readonly term: number };
  /**
   * Requests a linearizable read. The result appears in `Ready.readStates` or `Ready.abortedReads`; after a restart it
   * never appears. Throws `NoLeader`, `Overloaded`.
   */
  readIndex(context: ReadContext): void;
  /** Starts a transfer of leadership. Success is visible in `status().leader`. Throws `NoLeader`, `BadTarget`. */
  transferLeadership(to: NodeId): void;
  hasReady(): boolean;
  ready(): Ready;
  /** Confirms that the work of the oldest outstanding Ready is done. */
  advance(ready: Ready): void;
  status(): RaftStatus;
  /** Same values as in `status()`, for frequent callers. */
  readonly term: number;
  readonly lastIndex: number;

  /** The term of the entry at `index`; undefined outside the log. */
  termAt(index: number): number | undefined;
  /** Discards the log up to `index`, which must be applied and part of the durable state machine. */
  compact(index: number): void;
  /** Delivers the entries requested in `Ready.entryReads`. */
  entriesRead(from: number, entries: readonly Entry[]): void;
  /**
   * Message that the caller passes to `step` on member `to` once `to` has received the whole snapshot. Undefined if
   * this member is no longer the leader.
   */
  snapshotMessage(to: NodeId, snapshot: SnapshotMeta): Message | undefined;
  /**
   * Reports that the stream of a snapshot of `index` has started or made progress. Must be called more often than every
   * election timeout.
   */
  snapshotProgress(to: NodeId, index: number): void;
  /** Reports the end of a snapshot stream. If the snapshot was not delivered, a later Ready requests another stream. */
  snapshotDone(to: NodeId, delivered: boolean): void;
  /** Reports that the transport could not deliver a message to `to`. */
  unreachable(to: NodeId): void;

  /** Reports that gossip has confirmed the death of `leader`. */
  leaderConfirmedDead(leader: NodeId): void;
  /** Reports that, according to gossip, other members currently reach `leader`. Valid for `ticks`. */
  hintLeaderSeen(leader: NodeId, ticks: number): void;
  /** Sets the log positions and health that gossip reports, including this member's own. */
  setPeerHints(peers: readonly PeerHint[]): void;
  /** Sets new timeouts, derived from measured flushes and round trips. All members should use similar values. */
  setTiming(electionTicks: number, heartbeatTicks: number): void;
}
