/**
 * What goes into the machine and what comes out of it. Indices, terms and ticks are safe integers; the shell encodes.
 */

/**
 * A member's name inside the cluster: any stable text that is never given to another member (hex of etcd's member id,
 * say).
 */
export type NodeId = string;

/**
 * Names a read request. Never repeated by a member, not even after a restart: an answer that was on its way must not
 * fit a new question.
 */
export type ReadContext = string;

export type ConfOperation = 'addVoter' | 'addLearner' | 'remove';

export interface ConfStep {
  readonly op: ConfOperation;
  readonly id: NodeId;
}

/**
 * One step changes the configuration at once (thesis §4.1); several go through a joint configuration (§4.3), which the
 * leader leaves by itself as soon as it has been applied; no step at all is that leaving. `addLearner` of a voter
 * demotes it, `addVoter` of a learner promotes it.
 */
export interface ConfChange {
  readonly steps: readonly ConfStep[];
  /** The shell's own: peer addresses, say. */
  readonly context?: Uint8Array;
}

/** A configuration as it is written down. Lists are sorted. `outgoing` is not empty in a joint configuration only. */
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
/** `noop` is what a leader writes first in its term (thesis §6.4). */
export type Entry = EntryPosition &
  (
    | { readonly kind: 'data'; readonly data: Uint8Array }
    | { readonly kind: 'conf'; readonly change: ConfChange }
    | { readonly kind: 'noop' }
  );

/** A snapshot by what it stands for. Its bytes are the shell's business. */
export interface SnapshotMeta extends EntryPosition {
  readonly conf: ConfState;
}

/**
 * Must survive a crash. `commit` may lag after one, but is written no later than the entries that come with or after
 * it.
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
 * What the sender knows to be committed. A rejection carries it: a peer that has that entry too may continue from
 * there, and may no longer need the sender's vote, which need not be a voter itself by then. Source: raft-rs, "commit
 * by vote".
 */
interface Known {
  readonly commit?: number;
  readonly commitTerm?: number;
}

export type Message =
  /**
   * Would you vote for me in `term`? Changes nothing at the receiver. `leaderDead`: gossip has confirmed the leader's
   * death to the sender.
   */
  | (Termed & {
      readonly type: 'preVote';
      readonly lastIndex: number;
      readonly lastTerm: number;
      readonly leaderDead: boolean;
    })
  | (Termed & Known & { readonly type: 'preVoteResp'; readonly granted: boolean })
  /** `transfer`: the leader requested this election, so voters do not protect its lease. `leaderDead` as above. */
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
      /** Only tells of the commit index: nothing need be answered if all is well. */
      readonly quiet?: boolean;
    })
  /**
   * Accepted: the log agrees with the leader's up to `index`, on disk. Rejected: `index` is the refused `prevIndex`,
   * and the logs can agree at `hintIndex` at best, where this one's term is `hintTerm`.
   */
  | (Termed & {
      readonly type: 'appendResp';
      readonly index: number;
      readonly rejected: boolean;
      readonly hintIndex: number;
      readonly hintTerm: number;
    })
  /** `round` counts the leader's broadcasts in its term; its echo confirms leadership to reads (thesis §6.4). */
  | (Termed & { readonly type: 'heartbeat'; readonly commit: number; readonly round: number })
  | (Termed & { readonly type: 'heartbeatResp'; readonly round: number })
  /** Stepped into the receiver once the shell has every byte of it. */
  | (Termed & { readonly type: 'snapshot'; readonly snapshot: SnapshotMeta })
  | (Termed & { readonly type: 'timeoutNow' })
  | (Envelope & { readonly type: 'propose'; readonly data: readonly Uint8Array[] })
  | (Envelope & { readonly type: 'transfer'; readonly target: NodeId })
  | (Envelope & { readonly type: 'readIndex'; readonly context: ReadContext })
  | (Envelope & { readonly type: 'readIndexResp'; readonly context: ReadContext; readonly index: number });

export type MessageOf<T extends Message['type']> = Extract<Message, { readonly type: T }>;
export type TermedMessage = Extract<Message, { readonly term: number }>;

/** Once the state machine has applied `index`, a read asked for as `context` may be served from it. */
export interface ReadState {
  readonly context: ReadContext;
  readonly index: number;
}

/**
 * A follower needs a snapshot of at least `index`. The shell streams one and reports with `snapshotProgress` and
 * `snapshotDone`.
 */
export interface SnapshotRequest {
  readonly to: NodeId;
  readonly index: number;
}

/**
 * Entries that left memory are needed again. Answered, always, with `entriesRead(from, …)`: at least one entry, or none
 * if they have been compacted since.
 */
export interface EntryRead {
  readonly from: number;
  readonly maxBytes: number;
}

/**
 * Work for the shell. The order is the contract:
 * 1. At once, in any order: send `messages`, start `snapshotsToSend` and `entryReads`, apply `committed` (they are on
 *    this member's disk
 *    already) and write `confState` down with the applied index, answer `readStates` when their index is applied.
 * 2. Write `snapshot`, `entries`, `hardState`, as one, after those of earlier Readys; flushed if `mustSync`.
 * 3. Then send `messagesAfterPersist` and call `advance(ready)`, in the order of the Readys.
 * More Readys may be taken while earlier ones are being written; one flush may serve many of them.
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
  /** The configuration after the last entry of `committed`, if that changed it. */
  readonly confState: ConfState | undefined;
  readonly readStates: readonly ReadState[];
  /** Reads that will not be answered: leadership was lost, or the leader did not answer. */
  readonly abortedReads: readonly ReadContext[];
  readonly snapshotsToSend: readonly SnapshotRequest[];
  readonly entryReads: readonly EntryRead[];
}

/** The term from `from` on, up to the next run. */
export interface TermRun {
  readonly from: number;
  readonly term: number;
}

/** What the disk holds at start. A new member has `emptyStorage(…)`. */
export interface StoredState {
  readonly hardState: HardState;
  /** The last entry that was compacted away, or the snapshot's position; zeros if there is none. */
  readonly base: { readonly index: number; readonly term: number };
  /** What the state machine has applied, durably. */
  readonly applied: number;
  /** The configuration at `applied`. */
  readonly conf: ConfState;
  /** The end of the log, at least everything after `applied`. */
  readonly entries: readonly Entry[];
  /** Terms of the entries between `base` and `entries`; needed only if there is a gap. */
  readonly terms: readonly TermRun[];
}

export interface RaftConfig {
  readonly id: NodeId;
  /** Followers wait between this and twice this many ticks. */
  readonly electionTicks: number;
  readonly heartbeatTicks: number;
  /** Uniform in [0, `below`): spreads the election timeouts. */
  readonly randomTicks: (below: number) => number;
  /** A follower passes proposals to its leader instead of refusing them. They may get lost or arrive twice. */
  readonly forwardProposals: boolean;
  readonly maxAppendBytes: number;
  readonly maxCommittedBytes: number;
  readonly maxInflightMessages: number;
  readonly maxInflightBytes: number;
  readonly maxUncommittedBytes: number;
  /** Applied entries are kept in memory for slow followers up to about this many bytes. */
  readonly maxCachedBytes: number;
  readonly maxPendingReads: number;
}

/** What gossip says of a member. Lower `health` is better: 0 is well. */
export interface PeerHint {
  readonly id: NodeId;
  readonly alive: boolean;
  readonly lastIndex: number;
  readonly health: number;
}
