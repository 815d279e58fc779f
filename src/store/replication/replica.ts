/**
 * Drives this member's raft state machine: ticks it, delivers its messages, persists its entries and state, applies
 * committed entries and serves ReadIndex. All work that is queued while the disk is busy is persisted in one write.
 */

import { CodedError, messageOf } from '../../base/errors.ts';
import type { Timer } from '../../base/time/clock.ts';
import {
  type ConfState,
  createRaft,
  type Message,
  type NodeId,
  type Raft,
  RaftError,
  type Ready,
  type SnapshotMeta,
} from '../core/raft/index.ts';
import type { StoredEntry, StoredHardState } from '../disk/port.ts';
import { Commits } from './commits.ts';
import { ElectionTimeout } from './election-timeout.ts';
import { fromStored, toStored } from './peers/entry-codec.ts';
import { Heartbeats } from './peers/heartbeats.ts';
import { ReadIndexQueue } from './read-index.ts';
import type { ReplicaDeps, ReplicaTiming } from './replica-deps.ts';

/** A leader whose disk has not responded for this many election timeouts transfers leadership. */
const STUCK_ELECTIONS = 4;
/** Interval at which the election timeout is recomputed. */
const ADAPT_MS = 1000;

export class Replica {
  readonly #deps: ReplicaDeps;
  readonly #raft: Raft;
  #timing: ReplicaTiming;
  #timer: Timer | undefined;
  #stopping = false;
  #stopped = false;
  #pumping = false;
  #queue: Ready[] = [];
  readonly #sentEarly = new Set<Ready>();
  #writing: Promise<void> | undefined;
  #writingSinceMs = 0;
  #leaderHeardMs = 0;
  #isStateWriteDue = false;
  /** Commit index that is persisted with the next write of other state. */
  #lateHard: StoredHardState | undefined;
  #hardOnDisk: StoredHardState;
  #leads = false;
  #leader: NodeId | undefined;
  #term: number;
  #applied: number;
  #conf: ConfState;
  readonly #reads: ReadIndexQueue;
  readonly #heartbeats: Heartbeats;
  readonly #commits: Commits;
  readonly #electionTimeout: ElectionTimeout | undefined;
  #adaptedAtMs = 0;

  constructor(deps: ReplicaDeps) {
    const { config, timing, stored } = deps;
    this.#deps = deps;
    this.#timing = timing;
    this.#raft = createRaft(
      { ...config, electionTicks: timing.electionTicks, heartbeatTicks: timing.heartbeatTicks },
      stored,
    );
    this.#electionTimeout =
      timing.adapts === true ? new ElectionTimeout(timing.electionTicks * timing.tickMs) : undefined;
    this.#hardOnDisk = stored.hardState;
    this.#applied = stored.applied;
    this.#conf = stored.conf;
    this.#term = stored.hardState.term;
    this.#reads = new ReadIndexQueue(
      deps.runId,
      (context) => this.#requestIndex(context),
      () => deps.onReadFailed?.(),
    );
    this.#commits = new Commits({
      storage: deps.storage,
      clock: deps.clock,
      onFull: () => deps.machine.diskFull(true),
      onWritten: (ms) => deps.onWritten?.(ms),
      stopping: () => this.#stopping,
    });
    this.#heartbeats = new Heartbeats(deps.clock, (to, ms) => deps.onLateHeartbeat?.(to, ms));
  }

  get leads(): boolean {
    return this.#leads;
  }

  get leader(): NodeId | undefined {
    return this.#leader;
  }

  get term(): number {
    return this.#term;
  }

  get applied(): number {
    return this.#applied;
  }

  get conf(): ConfState {
    return this.#conf;
  }

  /** Whether this member is the only voter. */
  get alone(): boolean {
    return this.#conf.voters.length === 1 && this.#conf.outgoing.length === 0 && this.#conf.voters[0] === this.id;
  }

  /** Whether the replica was stopped or its disk failed. Proposals then have no effect. */
  get ended(): boolean {
    return this.#stopped;
  }

  get id(): NodeId {
    return this.#deps.config.id;
  }

  get writeMs(): number {
    return this.#commits.writeMs;
  }

  get writes(): number {
    return this.#commits.writes;
  }

  get raft(): Pick<
    Raft,
    'status' | 'term' | 'lastIndex' | 'termAt' | 'compact' | 'snapshotMessage' | 'snapshotProgress' | 'snapshotDone'
  > {
    return this.#raft;
  }

  start(): void {
    // A single voter campaigns immediately, because there is no other candidate.
    if (this.alone) this.#do((raft) => raft.campaign());
    this.#arm();
  }

  /** Completes the write in progress and the queued writes. Later calls of other methods have no effect. */
  async stop(): Promise<void> {
    this.#stopping = true;
    while (this.#writing !== undefined || this.#queue.some(needsDisk)) {
      this.#write();
      await this.#writing;
      if (this.#stopped) break;
    }
    this.#stopped = true;
    this.#timer?.cancel();
    this.#reads.fail(new CodedError('closed', 'the store is stopping'));
  }

  /** Throws RaftError without proposing anything. */
  propose(data: readonly Uint8Array[]): { readonly term: number; readonly first: number } {
    const proposed = this.#raft.propose(data);
    if (proposed.kind !== 'appended') throw new RaftError('NotLeader', 'proposals are not forwarded');
    this.#pump();
    return proposed;
  }

  /** Throws RaftError. */
  proposeConfChange(change: Parameters<Raft['proposeConfChange']>[0]): {
    readonly index: number;
    readonly term: number;
  } {
    const proposed = this.#raft.proposeConfChange(change);
    this.#pump();
    return proposed;
  }

  /** Throws RaftError. */
  transferLeadership(to: NodeId): void {
    this.#raft.transferLeadership(to);
    this.#pump();
  }

  campaign(): void {
    this.#do((raft) => raft.campaign());
  }

  /** Milliseconds since the last message of the leader, or 0 on the leader. */
  get leaderHeardAgoMs(): number {
    return this.#leads ? 0 : this.#deps.clock.monotonicMs() - this.#leaderHeardMs;
  }

  /**
   * Processes a message from a peer. A rejected message is logged and dropped. 'LogLost' and 'Diverged' stop this
   * member.
   */
  step(message: Message): void {
    const now = this.#deps.clock.monotonicMs();
    if (message.type === 'heartbeat' || message.type === 'append') {
      this.#leaderHeardMs = now;
      if (message.term >= this.#term) this.#electionTimeout?.leaderMessageReceived(message.from, message.term, now);
    } else if (message.type === 'heartbeatResp') this.#electionTimeout?.answered(message.round, message.from, now);
    this.#do((raft) => raft.step(message));
  }

  /** Applies an input that raft may reject without effect. */
  hint(input: (raft: Raft) => void): void {
    this.#do(input);
  }

  setTiming(timing: ReplicaTiming): void {
    this.#timing = timing;
    this.#raft.setTiming(timing.electionTicks, timing.heartbeatTicks);
  }

  get electionTicks(): number {
    return this.#timing.electionTicks;
  }

  get heartbeatMs(): number {
    return this.#timing.heartbeatTicks * this.#timing.tickMs;
  }

  get electionMs(): number {
    return this.#timing.electionTicks * this.#timing.tickMs;
  }

  /** Requests a write for the state of the machine even if raft has nothing to persist. */
  requestWrite(): void {
    this.#isStateWriteDue = true;
    this.#write();
  }

  /**
   * Resolves when everything acknowledged by any member before the call has been applied here. Rejects with CodedError
   * 'no-leader' when the commit index cannot be confirmed now.
   */
  readIndex(): Promise<void> {
    if (this.#stopped) return Promise.reject(new CodedError('closed', 'the store is stopping'));
    return this.#reads.add();
  }

  #requestIndex(context: string): void {
    try {
      this.#raft.readIndex(context);
    } catch (error) {
      if (!(error instanceof RaftError)) throw error;
      this.#reads.aborted(context, error.message);
    }
    this.#pump();
  }

  #do(input: (raft: Raft) => void): void {
    if (this.#stopped) return;
    try {
      input(this.#raft);
    } catch (error) {
      if (!(error instanceof RaftError)) throw error;
      if (error.code === 'LogLost' || error.code === 'Diverged') {
        this.#fatal(error);
        return;
      }
      this.#deps.log.v(4, 'raft rejected an input', { cause: error.message });
    }
    this.#pump();
  }

  #fatal(error: Error): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#timer?.cancel();
    this.#reads.fail(error);
    this.#deps.onFatal(error);
  }

  /** Whether ticks are required. A single voter that leads and has no learners needs none. */
  get #needsTicks(): boolean {
    return !(this.alone && this.#leads && this.#conf.learners.length === 0);
  }

  #arm(): void {
    if (this.#stopped || this.#timer !== undefined || !this.#needsTicks) return;
    this.#timer = this.#deps.clock.setTimer(this.#timing.tickMs, () => {
      this.#timer = undefined;
      if (this.#needsTicks) {
        this.#do((raft) => raft.tick());
        this.#checkDisk();
        this.#adapt();
      }
      this.#arm();
    });
  }

  #adapt(): void {
    const now = this.#deps.clock.monotonicMs();
    this.#electionTimeout?.ticked(now);
    if (this.#electionTimeout === undefined || now - this.#adaptedAtMs < ADAPT_MS) return;
    this.#adaptedAtMs = now;
    const electionMs = this.#electionTimeout.adapt(this.#commits.writeMs, now);
    if (electionMs === undefined) return;
    this.#deps.log.v(2, 'election timeout adapted', {
      ms: Math.round(electionMs),
      writeMs: Math.round(this.#commits.writeMs),
    });
    this.setTiming({ ...this.#timing, electionTicks: Math.ceil(electionMs / this.#timing.tickMs) });
  }

  /** Transfers leadership to a follower that can persist entries when this leader's disk does not respond. */
  #checkDisk(): void {
    // On a full disk, full-disk.ts transfers leadership, because only a member with free space can help.
    if (!this.#leads || this.#writing === undefined || this.#commits.lacksRoom) return;
    const waitedMs = this.#deps.clock.monotonicMs() - this.#writingSinceMs;
    if (waitedMs < STUCK_ELECTIONS * this.electionMs) return;
    const target = this.bestFollower();
    if (target === undefined) return;
    this.#deps.log.warn('disk is stalled; transferring leadership', { ms: Math.round(waitedMs), to: target });
    this.#do((raft) => raft.transferLeadership(target));
  }

  #otherVoters(): NodeId[] {
    return this.#conf.voters.filter((id) => id !== this.id);
  }

  /** Active voter with the highest match index among those that `may` accepts. */
  bestFollower(may: (id: NodeId) => boolean = () => true): NodeId | undefined {
    let best: { readonly id: NodeId; readonly match: number } | undefined;
    for (const [id, { match, active, state }] of this.#raft.status().progress) {
      if (id === this.id || !may(id) || !this.#conf.voters.includes(id) || !active || state === 'snapshot') continue;
      if (best === undefined || match > best.match) best = { id, match };
    }
    return best?.id;
  }

  /** Processes raft's Ready batches until there are none. */
  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    try {
      while (!this.#stopped && this.#raft.hasReady()) {
        this.#take(this.#raft.ready());
        this.#advanceWithoutDisk();
      }
    } finally {
      this.#pumping = false;
    }
    this.#write();
  }

  #take(ready: Ready): void {
    if (ready.messages.length > 0) {
      this.#deps.send(ready.messages);
      this.#heartbeats.sent(ready.messages, this.heartbeatMs);
    }
    const beat =
      this.#electionTimeout === undefined ? undefined : ready.messages.find((message) => message.type === 'heartbeat');
    if (beat !== undefined)
      this.#electionTimeout?.roundSent(beat.round, this.#otherVoters(), this.#deps.clock.monotonicMs());
    const last = ready.committed.at(-1);
    if (last !== undefined) {
      if (ready.confState !== undefined) {
        this.#conf = ready.confState;
        this.#arm();
      }
      const began = this.#deps.clock.monotonicMs();
      this.#deps.machine.apply(ready.committed, ready.confState);
      this.#deps.onApplied?.(this.#deps.clock.monotonicMs() - began);
      this.#applied = last.index;
    }
    this.#term = this.#raft.term;
    if (ready.softState !== undefined) {
      if (this.#leads !== (ready.softState.role === 'leader')) this.#heartbeats.reset();
      this.#leads = ready.softState.role === 'leader';
      this.#arm();
      if (this.#leader !== undefined && ready.softState.leader === undefined)
        this.#electionTimeout?.lost(this.#deps.clock.monotonicMs());
      this.#leader = ready.softState.leader;
      this.#deps.machine.leadershipChanged(this.#leads, this.#leader, this.#term);
    }
    for (const { context, index } of ready.readStates) this.#reads.confirmed(context, index);
    for (const context of ready.abortedReads) this.#reads.aborted(context, 'the leader has changed');
    this.#reads.applied(this.#applied);
    this.#confirmEarly(ready);
    for (const { to, index } of ready.snapshotsToSend) this.#deps.machine.streamSnapshot(to, index);
    for (const { from, maxBytes } of ready.entryReads) void this.#readEntries(from, maxBytes);
    this.#queue.push(ready);
  }

  async #readEntries(from: number, maxBytes: number): Promise<void> {
    try {
      const entries = await this.#deps.storage.entries(from, maxBytes);
      this.#do((raft) => raft.entriesRead(from, entries.map(fromStored)));
    } catch (error) {
      if (!this.#stopped) this.#deps.log.warn('reading log entries failed', { from, cause: messageOf(error) });
    }
  }

  /** Advances batches that need no disk write and are not queued behind a batch that needs a disk write. */
  #advanceWithoutDisk(): void {
    if (this.#writing !== undefined) return;
    while (this.#queue.length > 0 && !needsDisk(this.#queue[0] as Ready)) {
      const ready = this.#queue.shift() as Ready;
      if (ready.hardState !== undefined) this.#lateHard = ready.hardState;
      this.#done(ready);
    }
  }

  /** Sends heartbeat responses early: they depend only on the persisted term and need not wait for a slow write. */
  #confirmEarly(ready: Ready): void {
    if (this.#queue.length === 0 && this.#writing === undefined) return;
    const { term } = this.#raft;
    if (ready.hardState !== undefined && !sameVote(ready.hardState, this.#hardOnDisk)) return;
    if (term !== this.#hardOnDisk.term) return;
    const early = ready.messagesAfterPersist.filter((message) => message.type === 'heartbeatResp');
    if (early.length === 0) return;
    this.#deps.send(early);
    this.#sentEarly.add(ready);
  }

  #done(ready: Ready): void {
    let promises = ready.messagesAfterPersist;
    if (this.#sentEarly.delete(ready)) promises = promises.filter((message) => message.type !== 'heartbeatResp');
    if (promises.length > 0) this.#deps.send(promises);
    this.#raft.advance(ready);
  }

  #write(): void {
    if (this.#writing !== undefined || this.#stopped) return;
    if (!this.#isStateWriteDue && !this.#queue.some(needsDisk)) return;
    this.#isStateWriteDue = false;
    this.#writingSinceMs = this.#deps.clock.monotonicMs();
    this.#writing = this.#writeQueue()
      .catch((error: unknown) => {
        if (this.#stopping) this.#stopped = true;
        else if (!this.#stopped) this.#fatal(error instanceof Error ? error : new Error(messageOf(error)));
      })
      .finally(() => {
        this.#writing = undefined;
        if (this.#stopped) return;
        this.#advanceWithoutDisk();
        this.#pump();
      });
  }

  async #writeQueue(): Promise<void> {
    // A snapshot replaces the store, so it is processed alone.
    const at = this.#queue.findIndex((ready) => ready.snapshot !== undefined);
    if (at === 0) {
      const ready = this.#queue.shift() as Ready;
      await this.#install(ready, ready.snapshot as SnapshotMeta);
      return;
    }
    const readys = this.#queue.splice(0, at < 0 ? this.#queue.length : at);
    const entries: StoredEntry[] = [];
    let hardState = this.#lateHard;
    this.#lateHard = undefined;
    for (const ready of readys) {
      if (ready.hardState !== undefined) hardState = ready.hardState;
      const first = ready.entries[0];
      if (first === undefined) continue;
      while (entries.length > 0 && (entries.at(-1) as StoredEntry).index >= first.index) entries.pop();
      for (const entry of ready.entries) entries.push(toStored(entry));
    }
    const state = this.#deps.machine.stateToWrite();
    // A commit index alone does not cause a write. It is persisted with the next write of other state.
    const decided = hardState !== undefined && !sameVote(hardState, this.#hardOnDisk);
    const written = decided || state?.applied !== undefined ? hardState : undefined;
    if (written === undefined) this.#lateHard = hardState;
    await this.#commits.commit({
      entries,
      discards: state?.discards ?? [],
      ...(written === undefined ? {} : { hardState: written }),
      ...(state?.applied === undefined ? {} : { applied: state.applied }),
      ...(state?.base === undefined ? {} : { base: state.base }),
      ...(state?.reserved === undefined ? {} : { reserved: state.reserved }),
    });
    if (this.#stopped) return;
    if (written !== undefined) this.#hardOnDisk = written;
    for (const ready of readys) this.#done(ready);
    if (state !== undefined) this.#deps.machine.stateWritten(state);
  }

  async #install(ready: Ready, snapshot: SnapshotMeta): Promise<void> {
    const { term, vote } = ready.hardState ?? this.#lateHard ?? this.#hardOnDisk;
    const hardState = { term, vote, commit: snapshot.index };
    await this.#deps.machine.install(snapshot, hardState);
    this.#hardOnDisk = hardState;
    this.#lateHard = undefined;
    this.#applied = snapshot.index;
    this.#conf = snapshot.conf;
    this.#arm();
    this.#done(ready);
    this.#reads.applied(this.#applied);
  }
}

function needsDisk(ready: Ready): boolean {
  return ready.entries.length > 0 || ready.snapshot !== undefined || ready.mustSync;
}

function sameVote(a: StoredHardState, b: StoredHardState): boolean {
  return a.term === b.term && a.vote === b.vote;
}
