import { assert } from '../../../base/errors.ts';
import type { MemberProgress, Proposed, Raft, RaftStatus } from './contract.ts';
import { campaign, leaderConfirmedDead, poll, tickElection } from './election.ts';
import { RaftError } from './errors.ts';
import * as leader from './leader.ts';
import { RaftNode } from './node.ts';
import { propose, proposeConfChange } from './proposals.ts';
import { step } from './step.ts';
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
  SnapshotMeta,
  SoftState,
  StoredState,
} from './types.ts';

/**
 * Initial disk state of a member. The first voters of a cluster all start from the same virtual snapshot at index 1,
 * term 1, which contains the configuration. A member that joins later starts with an empty log and configuration: it
 * cannot campaign, and the leader sends it a snapshot because the leader's log begins after the virtual snapshot.
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

/** Creates a machine from the disk state. It starts as a follower. */
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
    step(this.#node, message);
  }

  campaign(): void {
    campaign(this.#node, 'pre');
  }

  propose(data: readonly Uint8Array[]): Proposed {
    return propose(this.#node, data);
  }

  proposeConfChange(change: ConfChange): { readonly index: number; readonly term: number } {
    return proposeConfChange(this.#node, change);
  }

  readIndex(context: ReadContext): void {
    const node = this.#node;
    if (node.leader === undefined) throw new RaftError('NoLeader', 'there is no leader');
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
    if (node.role === 'leader') leader.transferLeadership(node, to);
    else if (node.leader === undefined) throw new RaftError('NoLeader', 'there is no leader');
    else node.send({ type: 'transfer', to: node.leader, target: to });
  }

  hasReady(): boolean {
    const node = this.#node;
    return (
      node.messages.length > 0 ||
      node.messagesAfterPersist.length > 0 ||
      node.log.hasUnwritten ||
      node.log.hasCommitted ||
      node.reads.roundPending ||
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
    // All reads registered since the last heartbeat round share the next round.
    if (node.role === 'leader' && node.reads.roundPending) leader.broadcastHeartbeat(node);
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
   * Returns the entries to apply. A change of the configuration takes effect here, at the same entry on every member,
   * and ends the batch.
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
    assert(done?.ready === ready, 'Ready values are acknowledged in order');
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

  hintLeaderSeen(id: NodeId, ticks: number): void {
    this.#node.hints.leaderSeen(id, ticks);
  }

  setPeerHints(peers: readonly PeerHint[]): void {
    this.#node.hints.setPeers(peers);
  }

  setTiming(electionTicks: number, heartbeatTicks: number): void {
    assert(heartbeatTicks >= 1 && electionTicks > heartbeatTicks, 'elections wait for heartbeats');
    const node = this.#node;
    // A running timeout keeps its relative position between the bounds.
    node.electionTimeout = Math.round((node.electionTimeout / node.electionTicks) * electionTicks);
    node.electionTicks = electionTicks;
    node.heartbeatTicks = heartbeatTicks;
  }
}
