import { assert } from '../../base/errors.ts';
import { checkMessage } from './check-message.ts';
import { answerVote, campaign, defendsLeader, leaderConfirmedDead, poll, tickElection } from './election.ts';
import { RaftError } from './errors.ts';
import { heardLeader, onAppend, onHeartbeat, onSnapshot } from './follower.ts';
import * as leader from './leader.ts';
import { RaftNode } from './node.ts';
import type { ProgressState } from './progress.ts';
import type {
  ConfChange,
  ConfState,
  Entry,
  HardState,
  Message,
  NodeId,
  PeerHint,
  RaftConfig,
  ReadContext,
  Ready,
  Role,
  SnapshotMeta,
  SoftState,
  StoredState,
  TermedMessage,
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

/**
 * What a new member's disk holds. The first voters of a cluster all start from the same imagined snapshot, at index 1
 * of term 1, that says who votes. A member that joins later starts with an empty log and configuration: it cannot
 * campaign, and the leader, whose log begins after that snapshot, sends it one.
 */
export function emptyStorage(voters: readonly NodeId[]): StoredState {
  const first = voters.length === 0 ? 0 : 1;
  return {
    hardState: { term: first, vote: undefined, commit: first },
    base: { index: first, term: first },
    applied: first,
    conf: { voters: [...voters].sort(), outgoing: [], learners: [], learnersNext: [] },
    entries: [],
    terms: [],
  };
}

/** Starts a machine from what the disk holds. It begins as a follower. */
export function createRaft(config: RaftConfig, stored: StoredState): Raft {
  return new Machine(config, stored);
}

interface Outstanding {
  readonly ready: Ready;
  readonly ownVote: boolean;
  readonly term: number;
}

class Machine implements Raft {
  readonly #node: RaftNode;
  readonly #outstanding: Outstanding[] = [];
  #sequence = 0;
  #hard: HardState;
  #soft: SoftState;

  constructor(config: RaftConfig, stored: StoredState) {
    this.#node = new RaftNode(config, stored);
    this.#hard = stored.hardState;
    this.#soft = { role: 'follower', leader: undefined };
  }

  tick(): void {
    const node = this.#node;
    node.now++;
    node.hints.tick();
    for (const context of node.reads.expired(node.now)) node.abortedReads.push(context);
    if (node.role === 'leader') leader.tickLeader(node);
    else tickElection(node);
  }

  step(message: Message): void {
    const node = this.#node;
    checkMessage(message, node.id, node.term);
    if (!('term' in message)) {
      this.#stepForwarded(message);
      return;
    }
    if (message.term > node.term) {
      const asks = message.type === 'preVote' || message.type === 'vote';
      if (asks && defendsLeader(node, message)) return;
      const hypothetical = message.type === 'preVote' || (message.type === 'preVoteResp' && message.granted);
      if (!hypothetical) node.becomeFollower(message.term, fromLeader(message) ? message.from : undefined);
    } else if (message.term < node.term) {
      this.#stepStale(message);
      return;
    }
    this.#stepCurrent(message);
  }

  /**
   * A peer at a lower term is sent the current one: a replaced leader steps down, a candidate without effect catches
   * up.
   */
  #stepStale(message: TermedMessage): void {
    const node = this.#node;
    const to = message.from;
    if (fromLeader(message))
      node.promise({ type: 'appendResp', to, index: 0, rejected: true, hintIndex: 0, hintTerm: 0 });
    else if (message.type === 'preVote') node.promise({ type: 'preVoteResp', to, granted: false, ...node.known() });
  }

  #stepCurrent(message: TermedMessage): void {
    const node = this.#node;
    if (message.type === 'preVoteResp' || message.type === 'voteResp') node.learnCommit(message);
    switch (message.type) {
      case 'preVote':
      case 'vote':
        answerVote(node, message);
        return;
      case 'preVoteResp':
        if (node.role === 'preCandidate' && message.term === node.term + (message.granted ? 1 : 0))
          poll(node, message.from, message.granted);
        return;
      case 'voteResp':
        if (node.role === 'candidate') poll(node, message.from, message.granted);
        return;
      case 'append':
        heardLeader(node, message.from);
        onAppend(node, message);
        return;
      case 'heartbeat':
        heardLeader(node, message.from);
        onHeartbeat(node, message);
        return;
      case 'snapshot':
        heardLeader(node, message.from);
        onSnapshot(node, message);
        return;
      case 'appendResp':
        if (node.role === 'leader') leader.onAppendResp(node, message);
        return;
      case 'heartbeatResp':
        if (node.role === 'leader') leader.onHeartbeatResp(node, message);
        return;
      case 'timeoutNow':
        if (node.role === 'follower' && node.leader === message.from) campaign(node, 'transfer');
        return;
    }
  }

  /** What a peer asks of the leader. One who is asked in error keeps silent: the asker's own deadline deals with it. */
  #stepForwarded(message: Exclude<Message, TermedMessage>): void {
    const node = this.#node;
    if (message.type === 'readIndexResp') {
      if (node.reads.answered(message.context))
        node.readStates.push({ context: message.context, index: message.index });
      return;
    }
    if (node.role !== 'leader') return;
    if (message.type === 'propose') {
      if (this.#refusal(message.data) === undefined) this.#append(message.data);
    } else if (message.type === 'transfer') {
      if (node.membership.isVoter(message.target)) leader.transfer(node, message.target);
    } else if (node.reads.size < node.config.maxPendingReads) leader.registerRead(node, message.context, message.from);
  }

  campaign(): void {
    campaign(this.#node, 'pre');
  }

  propose(data: readonly Uint8Array[]): Proposed {
    assert(data.length > 0, 'something is proposed');
    const node = this.#node;
    if (node.role !== 'leader') {
      if (node.leader === undefined) throw new RaftError('NoLeader', 'there is no leader at the moment');
      if (!node.config.forwardProposals) throw new RaftError('NotLeader', `the leader is ${node.leader}`);
      node.send({ type: 'propose', to: node.leader, data });
      return { kind: 'forwarded', to: node.leader };
    }
    const refusal = this.#refusal(data);
    if (refusal !== undefined) throw refusal;
    return this.#append(data);
  }

  #refusal(data: readonly Uint8Array[]): RaftError | undefined {
    const node = this.#node;
    if (!node.membership.isVoter(node.id)) return new RaftError('Removed', 'this member has been removed');
    if (node.transferTarget !== undefined)
      return new RaftError('Transferring', `leadership is on its way to ${node.transferTarget}`);
    let bytes = 0;
    for (const each of data) bytes += each.length + 16;
    const limit = node.config.maxUncommittedBytes;
    // One that is too large by itself passes when nothing else waits: it could never pass otherwise.
    if (node.uncommittedBytes > 0 && node.uncommittedBytes + bytes > limit)
      return new RaftError('Overloaded', `${node.uncommittedBytes} of ${limit} bytes wait to be committed`);
    return undefined;
  }

  #append(data: readonly Uint8Array[]): Proposed {
    const node = this.#node;
    const { index: first, term } = node.position();
    leader.appendOwn(
      node,
      data.map((each, i): Entry => ({ index: first + i, term, kind: 'data', data: each })),
    );
    leader.broadcastAppend(node);
    return { kind: 'appended', term, first, last: first + data.length - 1 };
  }

  proposeConfChange(change: ConfChange): { readonly index: number; readonly term: number } {
    const node = this.#node;
    if (node.role !== 'leader') throw new RaftError('NotLeader', `the leader is ${node.leader ?? 'not known'}`);
    if (node.transferTarget !== undefined)
      throw new RaftError('Transferring', `leadership is on its way to ${node.transferTarget}`);
    const { index, term } = leader.proposeConf(node, change);
    return { index, term };
  }

  readIndex(context: ReadContext): void {
    const node = this.#node;
    if (node.leader === undefined) throw new RaftError('NoLeader', 'there is no leader at the moment');
    if (node.reads.size >= node.config.maxPendingReads)
      throw new RaftError('Overloaded', `${node.reads.size} reads wait for a quorum`);
    if (node.role === 'leader') leader.registerRead(node, context, undefined);
    else {
      node.reads.forward(context, node.now + node.electionTicks);
      node.send({ type: 'readIndex', to: node.leader, context });
    }
  }

  transferLeadership(to: NodeId): void {
    const node = this.#node;
    if (node.role === 'leader') leader.transfer(node, to);
    else if (node.leader === undefined) throw new RaftError('NoLeader', 'there is no leader at the moment');
    else node.send({ type: 'transfer', to: node.leader, target: to });
  }

  hasReady(): boolean {
    const node = this.#node;
    return (
      node.messages.length > 0 ||
      node.messagesAfterPersist.length > 0 ||
      node.log.hasUnwritten ||
      node.log.hasCommitted ||
      node.reads.roundWanted ||
      node.readStates.length > 0 ||
      node.abortedReads.length > 0 ||
      node.snapshotsToSend.length > 0 ||
      node.entryReads.length > 0 ||
      this.#hardChange() !== undefined ||
      this.#softChange() !== undefined
    );
  }

  #hardChange(): HardState | undefined {
    const { term, vote, log } = this.#node;
    const same = term === this.#hard.term && vote === this.#hard.vote && log.committed === this.#hard.commit;
    return same ? undefined : { term, vote, commit: log.committed };
  }

  #softChange(): SoftState | undefined {
    const { role, leader } = this.#node;
    return role === this.#soft.role && leader === this.#soft.leader ? undefined : { role, leader };
  }

  ready(): Ready {
    const node = this.#node;
    const { committed, confState } = this.#emit();
    // All reads asked since the last round share the next one.
    if (node.role === 'leader' && node.reads.roundWanted) leader.broadcastHeartbeat(node);
    const { entries, snapshot } = node.log.takeUnwritten();
    const hardState = this.#hardChange();
    const decided =
      hardState !== undefined && (hardState.term !== this.#hard.term || hardState.vote !== this.#hard.vote);
    const softState = this.#softChange();
    const ready: Ready = {
      sequence: ++this.#sequence,
      softState,
      hardState,
      entries,
      snapshot,
      mustSync: entries.length > 0 || snapshot !== undefined || decided,
      messages: node.messages,
      messagesAfterPersist: node.messagesAfterPersist,
      committed,
      confState,
      readStates: node.readStates,
      abortedReads: node.abortedReads,
      snapshotsToSend: node.snapshotsToSend,
      entryReads: node.entryReads,
    };
    this.#outstanding.push({ ready, ownVote: node.ownVote, term: node.term });
    if (hardState !== undefined) this.#hard = hardState;
    if (softState !== undefined) this.#soft = softState;
    node.messages = [];
    node.messagesAfterPersist = [];
    node.ownVote = false;
    node.readStates = [];
    node.abortedReads = [];
    node.snapshotsToSend = [];
    node.entryReads = [];
    return ready;
  }

  /**
   * Hands out what can be applied. A configuration takes effect here, where every member that applies the entry does
   * it, and ends the batch.
   */
  #emit(): { readonly committed: readonly Entry[]; readonly confState: ConfState | undefined } {
    const node = this.#node;
    const next = node.log.nextCommitted(node.config.maxCommittedBytes);
    const conf = next.findIndex((entry) => entry.kind === 'conf');
    const committed = conf < 0 ? next : next.slice(0, conf + 1);
    const last = committed.at(-1);
    if (last !== undefined) node.log.emitted = last.index;
    if (last?.kind === 'conf') {
      node.membership = node.membership.after(last.change);
      if (node.role === 'leader') leader.leaderReconfigured(node);
    }
    leader.leaveJoint(node);
    return { committed, confState: last?.kind === 'conf' ? node.membership.conf() : undefined };
  }

  advance(ready: Ready): void {
    const done = this.#outstanding.shift();
    assert(done?.ready === ready, 'Readys are done in their order');
    const node = this.#node;
    node.log.written(ready.entries.at(-1), ready.snapshot);
    const applied = ready.committed.at(-1);
    if (applied !== undefined) node.log.applied = Math.max(node.log.applied, applied.index);
    if (done.ownVote && node.role === 'candidate' && node.term === done.term) poll(node, node.id, true);
    if (node.role === 'leader') leader.leaderWritten(node);
    node.log.evict(node.config.maxCachedBytes);
  }

  get term(): number {
    return this.#node.term;
  }

  get lastIndex(): number {
    return this.#node.log.last;
  }

  status(): RaftStatus {
    const node = this.#node;
    const { id, term, vote, role, leader, log, membership, transferTarget } = node;
    const progress = new Map<NodeId, MemberProgress>();
    for (const [member, { match, next, state, paused, inflightMessages: inflight, active, wasActive }] of node.progress)
      progress.set(member, { match, next, state, paused, inflight, active: active || wasActive });
    return {
      id,
      term,
      vote,
      role,
      leader,
      commit: log.committed,
      applied: log.applied,
      firstIndex: log.base.index + 1,
      lastIndex: log.last,
      conf: membership.conf(),
      transferTarget,
      progress,
    };
  }

  termAt(index: number): number | undefined {
    return this.#node.log.term(index);
  }

  compact(index: number): void {
    this.#node.log.compact(index);
  }

  entriesRead(from: number, entries: readonly Entry[]): void {
    leader.entriesRead(this.#node, from, entries);
  }

  snapshotMessage(to: NodeId, snapshot: SnapshotMeta): Message | undefined {
    const { id: from, term, role } = this.#node;
    return role === 'leader' ? { type: 'snapshot', from, to, term, snapshot } : undefined;
  }

  snapshotProgress(to: NodeId, index: number): void {
    leader.snapshotProgress(this.#node, to, index);
  }

  snapshotDone(to: NodeId, delivered: boolean): void {
    leader.snapshotDone(this.#node, to, delivered);
  }

  unreachable(to: NodeId): void {
    leader.unreachable(this.#node, to);
  }

  leaderConfirmedDead(id: NodeId): void {
    leaderConfirmedDead(this.#node, id);
  }

  othersSeeLeader(id: NodeId, ticks: number): void {
    this.#node.hints.othersSee(id, ticks);
  }

  setPeerHints(peers: readonly PeerHint[]): void {
    this.#node.hints.setPeers(peers);
  }

  setTiming(electionTicks: number, heartbeatTicks: number): void {
    assert(heartbeatTicks >= 1 && electionTicks > heartbeatTicks, 'elections wait for heartbeats');
    const node = this.#node;
    // A timeout that is running keeps its place between the bounds, in the new measure.
    node.electionTimeout = Math.round((node.electionTimeout / node.electionTicks) * electionTicks);
    node.electionTicks = electionTicks;
    node.heartbeatTicks = heartbeatTicks;
  }
}

function fromLeader(message: TermedMessage): boolean {
  return message.type === 'append' || message.type === 'heartbeat' || message.type === 'snapshot';
}
