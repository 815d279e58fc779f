import { assert } from '../../../base/errors.ts';
import { GossipHints } from './gossip-hints.ts';
import { RaftLog } from './log.ts';
import { Membership } from './membership.ts';
import { Progress } from './progress.ts';
import { PendingReads } from './reads.ts';
import type {
  Entry,
  EntryRead,
  Message,
  NodeId,
  RaftConfig,
  ReadContext,
  ReadState,
  Role,
  SnapshotRequest,
  StoredState,
} from './types.ts';

/** A message without its sender, and without its term if that is the sender's current term. */
type Outgoing<T = Message> = T extends { readonly term: number }
  ? Omit<T, 'from' | 'term'> & { readonly term?: number }
  : Omit<T, 'from'>;

/** State of a member and its basic transitions. The rules are in `election`, `leader` and `follower`. */
export class RaftNode {
  readonly id: NodeId;
  readonly config: RaftConfig;
  electionTicks: number;
  heartbeatTicks: number;
  readonly log: RaftLog;
  membership: Membership;
  term: number;
  vote: NodeId | undefined;
  role: Role = 'follower';
  leader: NodeId | undefined;
  readonly progress = new Map<NodeId, Progress>();
  readonly votes = new Map<NodeId, boolean>();
  readonly reads = new PendingReads();
  readonly hints = new GossipHints();

  /** Total ticks, used for deadlines. */
  now = 0;
  /**
   * At a follower or candidate: ticks since the last message from the leader, granted vote or started election. At the
   * leader: ticks since the last quorum check.
   */
  electionElapsed = 0;
  heartbeatElapsed = 0;
  electionTimeout = 0;
  /** At the leader: target of a transfer in progress. */
  transferTarget: NodeId | undefined;
  /** At the leader: no other change of the configuration is accepted before this index has been applied. */
  confIndex = 0;
  /** At the leader: bytes proposed and not yet committed. */
  uncommittedBytes = 0;

  messages: Message[] = [];
  /** Messages that acknowledge durable state. They are sent after that state is on disk. */
  messagesAfterPersist: Message[] = [];
  /** Whether this member has voted for itself. The vote counts once it is on disk, as the votes of other voters do. */
  ownVote = false;
  readStates: ReadState[] = [];
  abortedReads: ReadContext[] = [];
  snapshotsToSend: SnapshotRequest[] = [];
  entryReads: EntryRead[] = [];

  constructor(config: RaftConfig, stored: StoredState) {
    assert(config.heartbeatTicks >= 1 && config.electionTicks > config.heartbeatTicks, 'elections wait for heartbeats');
    assert(config.maxInflightMessages >= 1 && config.maxAppendBytes >= 1, 'there are messages to send');
    this.id = config.id;
    this.config = config;
    this.electionTicks = config.electionTicks;
    this.heartbeatTicks = config.heartbeatTicks;
    this.log = new RaftLog(stored);
    this.membership = new Membership(stored.conf);
    this.term = stored.hardState.term;
    this.vote = stored.hardState.vote;
    this.resetTimeout();
  }

  resetTimeout(): void {
    this.electionElapsed = 0;
    this.electionTimeout = this.electionTicks + this.config.randomTicks(this.electionTicks);
  }

  /**
   * Whether this member may campaign. It must be a voter, must not be installing a snapshot, and must have applied
   * every committed configuration change.
   */
  get promotable(): boolean {
    return this.membership.isVoter(this.id) && !this.log.installing && !this.log.hasCommittedConfChange();
  }

  send(message: Outgoing): void {
    this.messages.push(this.#complete(message));
  }

  promise(message: Outgoing): void {
    this.messagesAfterPersist.push(this.#complete(message));
  }

  #complete(message: Outgoing): Message {
    const plain = message.type === 'propose' || message.type === 'transfer';
    if (plain || message.type === 'readIndex' || message.type === 'readIndexResp')
      return { ...message, from: this.id } as Message;
    return { term: this.term, ...message, from: this.id } as Message;
  }

  /** Clears the state of the role that ends. */
  #leaveRole(term: number): void {
    assert(term >= this.term && Number.isSafeInteger(term), 'the term never decreases');
    if (term !== this.term) {
      this.term = term;
      this.vote = undefined;
    }
    this.leader = undefined;
    this.ownVote = false;
    this.votes.clear();
    this.progress.clear();
    this.transferTarget = undefined;
    this.uncommittedBytes = 0;
    this.heartbeatElapsed = 0;
    this.snapshotsToSend = [];
    this.entryReads = [];
    for (const context of this.reads.abort()) this.abortedReads.push(context);
    this.resetTimeout();
  }

  becomeFollower(term: number, leader: NodeId | undefined): void {
    this.#leaveRole(term);
    this.role = 'follower';
    this.leader = leader;
  }

  /** Starts a pre-vote without a new term, so that a lost pre-vote has no effect on other members (thesis §9.6). */
  becomePreCandidate(): void {
    assert(this.role !== 'leader', 'a leader does not campaign');
    this.#leaveRole(this.term);
    this.role = 'preCandidate';
  }

  becomeCandidate(): void {
    assert(this.role !== 'leader', 'a leader does not campaign');
    this.#leaveRole(this.term + 1);
    this.role = 'candidate';
    this.vote = this.id;
    this.ownVote = true;
  }

  becomeLeader(): void {
    assert(this.role === 'candidate', 'only a candidate is elected');
    this.#leaveRole(this.term);
    this.role = 'leader';
    this.leader = this.id;
    this.trackMembers();
    for (const progress of this.progress.values()) progress.active = true;
    // The entries that are not applied yet may contain a change of the configuration.
    this.confIndex = this.log.last;
  }

  /** At the leader: keeps one progress record for each member of the configuration. */
  trackMembers(): void {
    for (const id of [...this.progress.keys()]) if (!this.membership.has(id)) this.progress.delete(id);
    for (const id of this.membership.ids()) {
      if (this.progress.has(id)) continue;
      const { maxInflightMessages, maxInflightBytes } = this.config;
      const progress = new Progress(this.log.last + 1, maxInflightMessages, maxInflightBytes);
      // A new member gets one election timeout to respond before it counts as inactive.
      progress.active = true;
      if (id === this.id) {
        progress.match = this.log.stable;
        progress.becomeReplicate();
      }
      this.progress.set(id, progress);
    }
  }

  /** Commit index of this member and its term. */
  known(): { readonly commit: number; readonly commitTerm: number } {
    return { commit: this.log.committed, commitTerm: this.log.term(this.log.committed) ?? 0 };
  }

  /** Applies a commit index from another member. If this log has the same entry, all entries up to it are committed. */
  updateCommit({ commit = 0, commitTerm = 0 }: { readonly commit?: number; readonly commitTerm?: number }): void {
    if (this.role !== 'leader' && commit > this.log.committed && this.log.term(commit) === commitTerm)
      this.log.committed = commit;
  }

  /** Progress records of the other members, sorted by ID. */
  peers(): [NodeId, Progress][] {
    return [...this.progress].filter(([id]) => id !== this.id).sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** Index and term of the next proposed entry. */
  position(): Pick<Entry, 'index' | 'term'> {
    return { index: this.log.last + 1, term: this.term };
  }

  ackRead(context: ReadContext, from: NodeId | undefined, index: number): void {
    if (from === undefined) this.readStates.push({ context, index });
    else this.send({ type: 'readIndexResp', to: from, context, index });
  }
}
