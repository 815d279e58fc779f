/** What the shell of a member uses of its consensus machine. */
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
 * Where proposals went: into this leader's log, to be committed or lost; or to the leader, where anything may become of
 * them.
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
  /** Leader only; empty elsewhere. */
  readonly progress: ReadonlyMap<NodeId, MemberProgress>;
}

/**
 * One member's consensus machine (Ongaro & Ousterhout 2014, "the paper"; Ongaro's dissertation, "the thesis"). It never
 * does anything: inputs change its state, `ready()` returns the work that follows, `advance()` says that it is done.
 * See `Ready` for the order of that work. Operating failures are `RaftError`s: what was asked has not happened, and the
 * machine goes on (after `LogLost` it must not: see there). Anything else that is thrown is a bug, and the member must
 * not go on.
 */
export interface Raft {
  /** A message from a peer whose name the transport has proven. */
  step(message: Message): void;
  /** A fixed amount of time has passed. */
  tick(): void;
  /** Asks for an election now, whatever gossip or the clock say. */
  campaign(): void;
  /** Throws `NoLeader`, `NotLeader`, `Transferring`, `Overloaded`, `Removed`. */
  propose(data: readonly Uint8Array[]): Proposed;
  /**
   * Leader only; one that is to be removed had better hand leadership over first, or the others wait for their
   * timeouts. Throws `NotLeader`, `Transferring`, `ConfChangePending`, `BadConfChange`.
   */
  proposeConfChange(change: ConfChange): { readonly index: number; readonly term: number };
  /**
   * Answered by `Ready.readStates` or `Ready.abortedReads`, or, at a restart, by nothing. Throws `NoLeader`,
   * `Overloaded`.
   */
  readIndex(context: ReadContext): void;
  /** Throws `NoLeader`, `BadTarget`. Success shows in `status().leader`. */
  transferLeadership(to: NodeId): void;
  hasReady(): boolean;
  ready(): Ready;
  /** The oldest Ready that is not done is done. */
  advance(ready: Ready): void;
  status(): RaftStatus;
  /** As in `status`, for those who ask often. */
  readonly term: number;
  readonly lastIndex: number;

  /** The term of the entry at `index`; undefined outside the log. */
  termAt(index: number): number | undefined;
  /** Forgets the log up to `index`, which must be applied and in the state machine's durable state. */
  compact(index: number): void;
  /** The answer to `Ready.entryReads`. */
  entriesRead(from: number, entries: readonly Entry[]): void;
  /** What to step into `to` once it has the whole snapshot; undefined if this member no longer leads. */
  snapshotMessage(to: NodeId, snapshot: SnapshotMeta): Message | undefined;
  /** A stream of a snapshot of `index` has begun or has moved on. Reported more often than every election timeout. */
  snapshotProgress(to: NodeId, index: number): void;
  /** The stream has ended; if it has not delivered, another request follows. */
  snapshotDone(to: NodeId, delivered: boolean): void;
  /** The transport could not deliver something to `to`. */
  unreachable(to: NodeId): void;

  /** Gossip has confirmed that `leader` is dead. */
  leaderConfirmedDead(leader: NodeId): void;
  /** Gossip: others have seen `leader` alive just now. Holds for `ticks`. */
  othersSeeLeader(leader: NodeId, ticks: number): void;
  /** Gossip: who is how far and how well; itself included. */
  setPeerHints(peers: readonly PeerHint[]): void;
  /** New times, from measured flushes and round trips. Both ends of a cluster should use about the same. */
  setTiming(electionTicks: number, heartbeatTicks: number): void;
}
