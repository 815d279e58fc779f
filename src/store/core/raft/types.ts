/** Inputs and outputs of the machine. Indices, terms and ticks are safe integers; the caller encodes them. */

/**
 * ID of a member in the cluster: a stable text that is never reused for another member (for example etcd's member ID in
 * hex).
 */
export type NodeId = string;

/**
 * ID of a read request. A member never reuses an ID, not even after a restart, so that a delayed response cannot match
 * a later request.
 */
export type ReadContext = string;

export type ConfOperation = 'addVoter' | 'addLearner' | 'remove';

export interface ConfStep {
  readonly op: ConfOperation;
  readonly id: NodeId;
}

/**
 * A change of the configuration. One step takes effect at once (thesis §4.1). Several steps go through a joint
 * configuration (§4.3), which the leader leaves automatically once it has been applied, with a change without steps.
 * `addLearner` of a voter demotes it; `addVoter` of a learner promotes it.
 */
export interface ConfChange {
  readonly steps: readonly ConfStep[];
  /** Opaque data of the caller, such as peer addresses. */
  readonly context?: Uint8Array;
}

/** Serialized form of a configuration. Lists are sorted. `outgoing` is empty unless the configuration is joint. */
export interface ConfState {
  readonly voters: readonly NodeId[];
  readonly outgoing: readonly NodeId[];
  readonly learners: readonly NodeId[];
  /** Voters of `outgoing` that become learners when the joint configuration is left. */
  readonly learnersNext: readonly NodeId[];
}

interface EntryPosition {
  readonly index: number;
  readonly term: number;
}
/** `noop` is the first entry that a leader writes in its term (thesis §6.4). */
export type Entry = EntryPosition &
  (
    | { readonly kind: 'data'; readonly data: Uint8Array }
    | { readonly kind: 'conf'; readonly change: ConfChange }
    | { readonly kind: 'noop' }
  );

/** Position and configuration of a snapshot. The caller stores and transfers the bytes of the snapshot. */
export interface SnapshotMeta extends EntryPosition {
  readonly conf: ConfState;
}

/**
 * State that must survive a crash. `commit` may be outdated after a crash; it is written no later than the entries that
 * come with or after it.
 */
export interface HardState {
  readonly term: number;
  readonly vote: NodeId | undefined;
  readonly commit: number;
}

export type Role = 'follower' | 'preCandidate' | 'candidate' | 'leader';

export interface SoftState {
  readonly role: Role;
  readonly leader: NodeId | undefined;
}

interface Envelope {
  readonly from: NodeId;
  readonly to: NodeId;
}
interface Termed extends Envelope {
  readonly term: number;
}

/**
 * Commit index known to the sender, included in a denied vote. A candidate whose log contains the same entry advances
 * its own commit index. As a result, the candidate may learn that the sender was removed, and no longer need its vote.
 * Source: raft-rs, "commit by vote".
 */
interface Known {
  readonly commit?: number;
  readonly commitTerm?: number;
}

export type Message =
  /**
   * Requests the vote that the receiver would give in `term`, without changing its state. `leaderDead`: gossip has
   * confirmed the leader's death to the sender.
   */
  | (Termed & {
      readonly type: 'preVote';
      readonly lastIndex: number;
      readonly lastTerm: number;
      readonly leaderDead: boolean;
    })
  | (Termed & Known & { readonly type: 'preVoteResp'; readonly granted: boolean })
  /**
   * `transfer`: the leader requested this election, so voters do not protect its lease. `leaderDead` as in `preVote`.
   */
  | (Termed & {
      readonly type: 'vote';
      readonly lastIndex: number;
      readonly lastTerm: number;
      readonly transfer: boolean;
      readonly leaderDead: boolean;
    })
  | (Termed & Known & { readonly type: 'voteResp'; readonly granted: boolean })
  | (Termed & {
      readonly type: 'append';
      readonly prevIndex: number;
      readonly prevTerm: number;
      readonly entries: readonly Entry[];
      readonly commit: number;
      /** Only carries the commit index; the receiver responds only on a mismatch. */
      readonly quiet?: boolean;
    })
  /**
   * Accepted: the log agrees with the leader's up to `index`, on disk. Rejected: `index` is the rejected `prevIndex`;
   * the logs can agree up to `hintIndex` at most, where the sender's term is `hintTerm`.
   */
  | (Termed & {
      readonly type: 'appendResp';
      readonly index: number;
      readonly rejected: boolean;
      readonly hintIndex: number;
      readonly hintTerm: number;
    })
  /**
   * `round` counts the leader's broadcasts in its term. The response repeats it, which confirms leadership for reads
   * (thesis §6.4).
   */
  | (Termed & { readonly type: 'heartbeat'; readonly commit: number; readonly round: number })
  | (Termed & { readonly type: 'heartbeatResp'; readonly round: number })
  /** Passed to `step` on the receiver once the caller has received all bytes of the snapshot. */
  | (Termed & { readonly type: 'snapshot'; readonly snapshot: SnapshotMeta })
  | (Termed & { readonly type: 'timeoutNow' })
  | (Envelope & { readonly type: 'propose'; readonly data: readonly Uint8Array[] })
  | (Envelope & { readonly type: 'transfer'; readonly target: NodeId })
  | (Envelope & { readonly type: 'readIndex'; readonly context: ReadContext })
  | (Envelope & { readonly type: 'readIndexResp'; readonly context: ReadContext; readonly index: number });

export type MessageOf<T extends Message['type']> = Extract<Message, { readonly type: T }>;
export type TermedMessage = Extract<Message, { readonly term: number }>;

/** Permission for a read: once the state machine has applied `index`, the read `context` may be served from it. */
export interface ReadState {
  readonly context: ReadContext;
  readonly index: number;
}

/**
 * A follower needs a snapshot of at least `index`. The caller streams such a snapshot and reports with
 * `snapshotProgress` and `snapshotDone`.
 */
export interface SnapshotRequest {
  readonly to: NodeId;
  readonly index: number;
}

/**
 * Request for entries that are no longer in memory. The caller always calls `entriesRead(from, …)`: at least one
 * entry, or none if they have been compacted since.
 */
export interface EntryRead {
  readonly from: number;
  readonly maxBytes: number;
}

/**
 * Work for the caller. It must be performed in this order:
 * 1. At once, in any order: send `messages`, start `snapshotsToSend` and `entryReads`, apply `committed` (already on
 *    this member's disk), store `confState` with the applied index, serve `readStates` when their index is applied.
 * 2. Write `snapshot`, `entries` and `hardState` atomically, after those of earlier Readys; flush if `mustSync`.
 * 3. Send `messagesAfterPersist` and call `advance(ready)`, in the order of the Readys.
 * Further Readys may be taken while earlier ones are being written. One flush may serve several Readys.
 */
export interface Ready {
  readonly sequence: number;
  readonly softState: SoftState | undefined;
  readonly hardState: HardState | undefined;
  /** Replaces the log from `entries[0].index` on. */
  readonly entries: readonly Entry[];
  /** Replaces the whole log and the state machine. */
  readonly snapshot: SnapshotMeta | undefined;
  readonly mustSync: boolean;
  readonly messages: readonly Message[];
  readonly messagesAfterPersist: readonly Message[];
  readonly committed: readonly Entry[];
  /** Configuration after the last entry of `committed`, if it changed. */
  readonly confState: ConfState | undefined;
  readonly readStates: readonly ReadState[];
  /** Reads that will not be served, because leadership was lost or the leader did not respond. */
  readonly abortedReads: readonly ReadContext[];
  readonly snapshotsToSend: readonly SnapshotRequest[];
  readonly entryReads: readonly EntryRead[];
}

/** The term of the entries from `from` on, up to the next run. */
export interface TermRun {
  readonly from: number;
  readonly term: number;
}

/** Disk state at start. A new member starts with `emptyStorage(…)`. */
export interface StoredState {
  readonly hardState: HardState;
  /** Last entry that was compacted away, or the snapshot's position; zeros if there is none. */
  readonly base: { readonly index: number; readonly term: number };
  /** Last index that the state machine has applied durably. */
  readonly applied: number;
  readonly conf: ConfState;
  /** The end of the log, at least all entries after `applied`. */
  readonly entries: readonly Entry[];
  /** Terms of the entries between `base` and `entries`; required only if there is a gap. */
  readonly terms: readonly TermRun[];
}

export interface RaftConfig {
  readonly id: NodeId;
  /** Followers time out after a random number of ticks between this and twice this. */
  readonly electionTicks: number;
  readonly heartbeatTicks: number;
  /** Uniform random integer in [0, `below`), used to spread the election timeouts. */
  readonly randomTicks: (below: number) => number;
  /**
   * Whether a follower forwards proposals to its leader instead of rejecting them. Forwarded proposals may get lost or
   * arrive twice.
   */
  readonly forwardProposals: boolean;
  readonly maxAppendBytes: number;
  readonly maxCommittedBytes: number;
  readonly maxInflightMessages: number;
  readonly maxInflightBytes: number;
  readonly maxUncommittedBytes: number;
  /** Approximate limit of applied entries kept in memory for slow followers. */
  readonly maxCachedBytes: number;
  readonly maxPendingReads: number;
}

/** State of a member according to gossip. Lower `health` is better; 0 is healthy. */
export interface PeerHint {
  readonly id: NodeId;
  readonly alive: boolean;
  readonly lastIndex: number;
  readonly health: number;
}
