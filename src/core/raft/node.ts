import { assert } from '../../base/errors.ts';
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

/** A message without its sender, and without its term if that is the sender's own. */
type Outgoing<T = Message> = T extends { readonly term: number }
  ? Omit<T, 'from' | 'term'> & { readonly term?: number }
  : Omit<T, 'from'>;

/**
 * A member's state and the few moves that everything else is made of. The rules live in `election`, `leader` and
 * `follower`.
 */
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

  /** Ticks in all; for deadlines. */
  now = 0;
  /**
   * Ticks since the leader was heard of, a vote given, an election begun; at the leader since the last check of its
   * quorum.
   */
  electionElapsed = 0;
  heartbeatElapsed = 0;
  electionTimeout = 0;
  /** Leader: where leadership is going. */
  transferTarget: NodeId | undefined;
  /** Leader: no other change of the configuration before this index has been applied. */
  confIndex = 0;
  /** Leader: bytes proposed and not committed. */
  uncommittedBytes = 0;

  messages: Message[] = [];
  /** Promises: they go out once what they promise is on disk. */
  messagesAfterPersist: Message[] = [];
  /** A vote for itself counts once it is on disk, like everybody's. */
  ownVote = false;
  readStates: ReadState[] = [];
  abortedReads: ReadContext[] = [];
  snapshotsToSend: SnapshotRequest[] = [];
  entryReads: EntryRead[] = [];

  constructor(config: RaftConfig, stored: StoredState) {
    assert(config.heartbeatTicks >= 1 && config.electionTicks > config.heartbeatTicks, 'elections wait for heartbeats');
    assert(config.maxInflightMessages >= 1 && config.maxAppendBytes >= 1, 'something can be sent');
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
   * Whether this member may ask for votes. A change of the configuration that is known to be committed has to be
   * applied first.
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

  /** Whatever belonged to the role that ends here goes. */
  #leaveRole(term: number): void {
    assert(term >= this.term && Number.isSafeInteger(term), 'terms only grow');
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

  /** Asks without changing its term: nothing is disturbed if the answer is no (thesis §9.6). */
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
    // There may be a change of the configuration among the entries that are not applied yet.
    this.confIndex = this.log.last;
  }

  /** Leader: one record of progress for each member of the configuration. */
  trackMembers(): void {
    for (const id of [...this.progress.keys()]) if (!this.membership.has(id)) this.progress.delete(id);
    for (const id of this.membership.ids()) {
      if (this.progress.has(id)) continue;
      const { maxInflightMessages, maxInflightBytes } = this.config;
      const progress = new Progress(this.log.last + 1, maxInflightMessages, maxInflightBytes);
      // A newcomer gets one election timeout to be heard of before it counts against the quorum.
      progress.active = true;
      if (id === this.id) {
        progress.match = this.log.stable;
        progress.becomeReplicate();
      }
      this.progress.set(id, progress);
    }
  }

  /** What is committed as far as this member knows. */
  known(): { readonly commit: number; readonly commitTerm: number } {
    return { commit: this.log.committed, commitTerm: this.log.term(this.log.committed) ?? 0 };
  }

  /** Somebody else knows that an entry is committed: if it is here too, then everything before it is as well. */
  learnCommit({ commit = 0, commitTerm = 0 }: { readonly commit?: number; readonly commitTerm?: number }): void {
    if (this.role !== 'leader' && commit > this.log.committed && this.log.term(commit) === commitTerm)
      this.log.committed = commit;
  }

  /** The other members, sorted. */
  peers(): [NodeId, Progress][] {
    return [...this.progress].filter(([id]) => id !== this.id).sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** Where an entry proposed now would go. */
  position(): Pick<Entry, 'index' | 'term'> {
    return { index: this.log.last + 1, term: this.term };
  }

  ackRead(context: ReadContext, from: NodeId | undefined, index: number): void {
    if (from === undefined) this.readStates.push({ context, index });
    else this.send({ type: 'readIndexResp', to: from, context, index });
  }
}
