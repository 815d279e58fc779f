/**
 * The shell around this member's raft machine: it ticks it, carries its messages, writes what it wants written, hands out what is committed and
 * answers reads. Whatever is waiting when the disk becomes free is one write.
 */
import type { Clock, Timer } from '../../../base/clock.ts';
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import {
  type ConfState,
  createRaft,
  type Entry,
  type Message,
  type NodeId,
  type Raft,
  type RaftConfig,
  RaftError,
  type Ready,
  type SnapshotMeta,
  type StoredState,
} from '../../../core/raft/index.ts';
import type { LogBatch, StoredEntry, StoredHardState, StoreLog } from '../port.ts';
import { Pace } from './election-timeout.ts';
import { fromStored, toStored } from './entry-codec.ts';

export interface ReplicaTiming {
  readonly tickMs: number;
  readonly electionTicks: number;
  readonly heartbeatTicks: number;
  /** The election timeout follows what is measured; what is given here is for the beginning. */
  readonly adapts?: boolean;
}

/** What goes to disk beside raft's own. */
export type Rider = Pick<LogBatch, 'discards' | 'applied' | 'base' | 'reserved'>;

/** What the replica drives. Everything is called synchronously and in order; nothing may throw. */
export interface ReplicatedMachine {
  /** Entries that are committed and on this disk. `conf`: the configuration after the last of them, if that changed it. */
  apply(entries: readonly Entry[], conf: ConfState | undefined): void;
  leadershipChanged(leads: boolean, leader: NodeId | undefined, term: number): void;
  /** Asked for each write; undefined: nothing. */
  rider(): Rider | undefined;
  riderWritten(rider: Rider): void;
  diskFull(full: boolean): void;
  /** `to` needs a snapshot of at least `index`; report with `snapshotProgress` and `snapshotDone`. */
  streamSnapshot(to: NodeId, index: number): void;
  /** Replaces the store by the snapshot that has been taken in. */
  install(snapshot: SnapshotMeta, hardState: StoredHardState): Promise<void>;
}

export interface ReplicaDeps {
  readonly config: Omit<RaftConfig, 'electionTicks' | 'heartbeatTicks'>;
  readonly timing: ReplicaTiming;
  readonly stored: StoredState;
  readonly storage: StoreLog;
  readonly clock: Clock;
  readonly log: Log;
  /** Best effort; all to one member arrive in their order or not at all. */
  readonly send: (messages: readonly Message[]) => void;
  readonly machine: ReplicatedMachine;
  /** Unique for every start of the process. */
  readonly runId: string;
  /** This member cannot go on: its log and the cluster's contradict each other. */
  readonly onFatal: (error: Error) => void;
  /** How long entries took to apply, in milliseconds. */
  readonly onApplied?: (ms: number) => void;
  /** A question for the commit index has come to nothing. */
  readonly onReadFailed?: () => void;
  /** A heartbeat left this much later, in milliseconds, than it should have. */
  readonly onLateHeartbeat?: (to: NodeId, ms: number) => void;
  /** How long a commit took, in milliseconds. */
  readonly onWritten?: (ms: number) => void;
}

interface Read {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Reads that wait for an index to be applied. */
interface Ripe {
  readonly index: number;
  readonly reads: readonly Read[];
}

const SPACE_RETRY_MS = 250;
/** Intervals after which a heartbeat counts as late. */
const LATE_HEARTBEATS = 2;
/** A leader whose disk has not answered for this many election timeouts had better not lead. */
const STUCK_ELECTIONS = 4;
/** How often the election timeout is looked at. */
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
  #lacksRoom = false;
  #leaderHeardMs = 0;
  #riderWanted = false;
  /** A commit index that need not be written for its own sake. */
  #lateHard: StoredHardState | undefined;
  #hardOnDisk: StoredHardState;
  #leads = false;
  #leader: NodeId | undefined;
  #term: number;
  #applied: number;
  #conf: ConfState;
  #reads = 0;
  #asking: Read[] | undefined;
  readonly #asked = new Map<string, Read[]>();
  #ripe: Ripe[] = [];
  /** When each of the others was last sent a heartbeat. */
  readonly #beats = new Map<NodeId, number>();
  /** Milliseconds that recent writes took, smoothed. */
  #writeMs = 0;
  #writes = 0;
  readonly #pace: Pace | undefined;
  #adaptedAtMs = 0;

  constructor(deps: ReplicaDeps) {
    const { config, timing, stored } = deps;
    this.#deps = deps;
    this.#timing = timing;
    this.#raft = createRaft(
      { ...config, electionTicks: timing.electionTicks, heartbeatTicks: timing.heartbeatTicks },
      stored,
    );
    this.#pace = timing.adapts === true ? new Pace(timing.electionTicks * timing.tickMs) : undefined;
    this.#hardOnDisk = stored.hardState;
    this.#applied = stored.applied;
    this.#conf = stored.conf;
    this.#term = stored.hardState.term;
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

  /** Nobody else has a say. */
  get alone(): boolean {
    return this.#conf.voters.length === 1 && this.#conf.outgoing.length === 0 && this.#conf.voters[0] === this.id;
  }

  /** Nothing that was proposed comes to anything here any more: it was stopped, or its disk failed. */
  get ended(): boolean {
    return this.#stopped;
  }

  get id(): NodeId {
    return this.#deps.config.id;
  }

  get writeMs(): number {
    return this.#writeMs;
  }

  get writes(): number {
    return this.#writes;
  }

  get raft(): Pick<
    Raft,
    'status' | 'term' | 'lastIndex' | 'termAt' | 'compact' | 'snapshotMessage' | 'snapshotProgress' | 'snapshotDone'
  > {
    return this.#raft;
  }

  start(): void {
    // Nobody else could be elected: no time to be lost.
    if (this.alone) this.#do((raft) => raft.campaign());
    this.#arm();
  }

  /** Lets what is being written finish; afterwards nothing more is done. */
  async stop(): Promise<void> {
    this.#stopping = true;
    while (this.#writing !== undefined || this.#queue.some(needsDisk)) {
      this.#write();
      await this.#writing;
      if (this.#stopped) break;
    }
    this.#stopped = true;
    this.#timer?.cancel();
    this.#failReads(new CodedError('closed', 'the store is stopping'));
  }

  /** Throws RaftError; nothing has happened then. */
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

  /** How long ago the leader was heard; 0 at the leader itself. */
  get leaderHeardAgoMs(): number {
    return this.#leads ? 0 : this.#deps.clock.monotonicMs() - this.#leaderHeardMs;
  }

  /** A message from a peer. One that is refused is logged and dropped; one that proves this member unfit ends it. */
  step(message: Message): void {
    const now = this.#deps.clock.monotonicMs();
    if (message.type === 'heartbeat' || message.type === 'append') {
      this.#leaderHeardMs = now;
      if (message.term >= this.#term) this.#pace?.heard(message.from, message.term, now);
    } else if (message.type === 'heartbeatResp') this.#pace?.answered(message.round, message.from, now);
    this.#do((raft) => raft.step(message));
  }

  /** An input of any other kind that may be refused in silence. */
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

  /** Something waits to ride with a write and nothing else may come. */
  wantWrite(): void {
    this.#riderWanted = true;
    this.#write();
  }

  /**
   * Resolves when whatever had been acknowledged anywhere before the call has been applied here. Rejects with CodedError 'no-leader' when that cannot
   * be found out now.
   */
  readIndex(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#stopped) {
        reject(new CodedError('closed', 'the store is stopping'));
        return;
      }
      if (this.#asking === undefined) {
        this.#asking = [];
        // What is asked in the same turn shares a question.
        queueMicrotask(() => this.#ask());
      }
      this.#asking.push({ resolve, reject });
    });
  }

  #ask(): void {
    const reads = this.#asking ?? [];
    this.#asking = undefined;
    this.#reads += 1;
    const context = `${this.#deps.runId}-${this.#reads}`;
    this.#asked.set(context, reads);
    try {
      this.#raft.readIndex(context);
    } catch (error) {
      if (!(error instanceof RaftError)) throw error;
      this.#abort(context, error.message);
    }
    this.#pump();
  }

  #abort(context: string, why: string): void {
    const reads = this.#asked.get(context) ?? [];
    this.#asked.delete(context);
    this.#deps.onReadFailed?.();
    for (const read of reads) read.reject(new CodedError('no-leader', why));
  }

  #failReads(error: Error): void {
    for (const reads of [...this.#asked.values(), this.#asking ?? [], ...this.#ripe.map((ripe) => ripe.reads)])
      for (const read of reads) read.reject(error);
    this.#asked.clear();
    this.#asking = undefined;
    this.#ripe = [];
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
      this.#deps.log.v(4, 'raft refused', { cause: error.message });
    }
    this.#pump();
  }

  #fatal(error: Error): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#timer?.cancel();
    this.#failReads(error);
    this.#deps.onFatal(error);
  }

  /** Time passes only where somebody could be missing: a member alone that leads needs no clock. */
  #arm(): void {
    if (this.#stopped) return;
    this.#timer = this.#deps.clock.setTimer(this.#timing.tickMs, () => {
      if (!(this.alone && this.#leads && this.#conf.learners.length === 0)) {
        this.#do((raft) => raft.tick());
        this.#checkDisk();
        this.#adapt();
      }
      this.#arm();
    });
  }

  #adapt(): void {
    const now = this.#deps.clock.monotonicMs();
    this.#pace?.ticked(now);
    if (this.#pace === undefined || now - this.#adaptedAtMs < ADAPT_MS) return;
    this.#adaptedAtMs = now;
    const electionMs = this.#pace.adapt(this.#writeMs, now);
    if (electionMs === undefined) return;
    this.#deps.log.v(2, 'the election timeout follows the times measured', {
      ms: Math.round(electionMs),
      writeMs: Math.round(this.#writeMs),
    });
    this.setTiming({ ...this.#timing, electionTicks: Math.ceil(electionMs / this.#timing.tickMs) });
  }

  /** A leader whose disk does not answer hands over to one who can still promise something. */
  #checkDisk(): void {
    // Where it waits for room only a member that has some is any better.
    if (!this.#leads || this.#writing === undefined || this.#lacksRoom) return;
    const waitedMs = this.#deps.clock.monotonicMs() - this.#writingSinceMs;
    if (waitedMs < STUCK_ELECTIONS * this.electionMs) return;
    const target = this.bestFollower();
    if (target === undefined) return;
    this.#deps.log.warn('the disk does not answer: handing leadership over', { ms: Math.round(waitedMs), to: target });
    this.#do((raft) => raft.transferLeadership(target));
  }

  #otherVoters(): NodeId[] {
    return this.#conf.voters.filter((id) => id !== this.id);
  }

  /** The voter that has most of the log and answers, of those that `may`. */
  bestFollower(may: (id: NodeId) => boolean = () => true): NodeId | undefined {
    let best: { readonly id: NodeId; readonly match: number } | undefined;
    for (const [id, { match, active, state }] of this.#raft.status().progress) {
      if (id === this.id || !may(id) || !this.#conf.voters.includes(id) || !active || state === 'snapshot') continue;
      if (best === undefined || match > best.match) best = { id, match };
    }
    return best?.id;
  }

  /** Takes what raft wants done until it wants nothing more. */
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
      this.#watchBeats(ready.messages);
    }
    const beat = this.#pace === undefined ? undefined : ready.messages.find((message) => message.type === 'heartbeat');
    if (beat !== undefined) this.#pace?.asked(beat.round, this.#otherVoters(), this.#deps.clock.monotonicMs());
    const last = ready.committed.at(-1);
    if (last !== undefined) {
      if (ready.confState !== undefined) this.#conf = ready.confState;
      const began = this.#deps.clock.monotonicMs();
      this.#deps.machine.apply(ready.committed, ready.confState);
      this.#deps.onApplied?.(this.#deps.clock.monotonicMs() - began);
      this.#applied = last.index;
    }
    this.#term = this.#raft.term;
    if (ready.softState !== undefined) {
      if (this.#leads !== (ready.softState.role === 'leader')) this.#beats.clear();
      this.#leads = ready.softState.role === 'leader';
      if (this.#leader !== undefined && ready.softState.leader === undefined)
        this.#pace?.lost(this.#deps.clock.monotonicMs());
      this.#leader = ready.softState.leader;
      this.#deps.machine.leadershipChanged(this.#leads, this.#leader, this.#term);
    }
    for (const { context, index } of ready.readStates) {
      const reads = this.#asked.get(context);
      this.#asked.delete(context);
      if (reads !== undefined) this.#ripe.push({ index, reads });
    }
    for (const context of ready.abortedReads) this.#abort(context, 'the leader has changed');
    this.#serveReads();
    this.#confirmEarly(ready);
    for (const { to, index } of ready.snapshotsToSend) this.#deps.machine.streamSnapshot(to, index);
    for (const { from, maxBytes } of ready.entryReads) void this.#readEntries(from, maxBytes);
    this.#queue.push(ready);
  }

  /** Heartbeats leave late where the event loop had no time for them. Source: etcd raft.go, contention.TimeoutDetector. */
  #watchBeats(messages: readonly Message[]): void {
    for (const { type, to } of messages) {
      if (type !== 'heartbeat') continue;
      const now = this.#deps.clock.monotonicMs();
      const late = now - (this.#beats.get(to) ?? now) - LATE_HEARTBEATS * this.heartbeatMs;
      if (late > 0) this.#deps.onLateHeartbeat?.(to, late);
      this.#beats.set(to, now);
    }
  }

  #serveReads(): void {
    if (this.#ripe.length === 0) return;
    const waiting: Ripe[] = [];
    for (const ripe of this.#ripe) {
      if (ripe.index > this.#applied) waiting.push(ripe);
      else for (const read of ripe.reads) read.resolve();
    }
    this.#ripe = waiting;
  }

  async #readEntries(from: number, maxBytes: number): Promise<void> {
    try {
      const entries = await this.#deps.storage.entries(from, maxBytes);
      this.#do((raft) => raft.entriesRead(from, entries.map(fromStored)));
    } catch (error) {
      if (!this.#stopped)
        this.#deps.log.warn('entries of the log could not be read', { from, cause: messageOf(error) });
    }
  }

  /** What needs no disk and has nothing before it that does is done already. */
  #advanceWithoutDisk(): void {
    if (this.#writing !== undefined) return;
    while (this.#queue.length > 0 && !needsDisk(this.#queue[0] as Ready)) {
      const ready = this.#queue.shift() as Ready;
      if (ready.hardState !== undefined) this.#lateHard = ready.hardState;
      this.#done(ready);
    }
  }

  /** Answers to heartbeats promise nothing but the term: with that on disk already they need not wait for a slow write. */
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
    if (!this.#riderWanted && !this.#queue.some(needsDisk)) return;
    this.#riderWanted = false;
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
    // A snapshot replaces everything: it is a step of its own.
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
    const rider = this.#deps.machine.rider();
    // The commit index alone is not worth the bytes: it rides when something of the state is written anyway.
    const decided = hardState !== undefined && !sameVote(hardState, this.#hardOnDisk);
    const written = decided || rider?.applied !== undefined ? hardState : undefined;
    if (written === undefined) this.#lateHard = hardState;
    await this.#commit({
      entries,
      discards: rider?.discards ?? [],
      ...(written === undefined ? {} : { hardState: written }),
      ...(rider?.applied === undefined ? {} : { applied: rider.applied }),
      ...(rider?.base === undefined ? {} : { base: rider.base }),
      ...(rider?.reserved === undefined ? {} : { reserved: rider.reserved }),
    });
    if (this.#stopped) return;
    if (written !== undefined) this.#hardOnDisk = written;
    for (const ready of readys) this.#done(ready);
    if (rider !== undefined) this.#deps.machine.riderWritten(rider);
  }

  /** Writes, if need be again and again until there is room: what raft has been promised is not taken back. */
  async #commit(batch: LogBatch): Promise<void> {
    const { storage, clock, machine } = this.#deps;
    for (;;) {
      const began = clock.monotonicMs();
      try {
        const { full } = await storage.commit(batch);
        const took = clock.monotonicMs() - began;
        this.#writeMs += (took - this.#writeMs) * 0.1;
        this.#writes += 1;
        this.#deps.onWritten?.(took);
        this.#lacksRoom = false;
        if (full) machine.diskFull(true);
        return;
      } catch (error) {
        if (!(error instanceof CodedError && error.code === 'no-space') || this.#stopping) throw error;
        this.#lacksRoom = true;
        machine.diskFull(true);
        await new Promise<void>((resolve) => clock.setTimer(SPACE_RETRY_MS, resolve));
      }
    }
  }

  async #install(ready: Ready, snapshot: SnapshotMeta): Promise<void> {
    const { term, vote } = ready.hardState ?? this.#lateHard ?? this.#hardOnDisk;
    const hardState = { term, vote, commit: snapshot.index };
    await this.#deps.machine.install(snapshot, hardState);
    this.#hardOnDisk = hardState;
    this.#lateHard = undefined;
    this.#applied = snapshot.index;
    this.#conf = snapshot.conf;
    this.#done(ready);
    this.#serveReads();
  }
}

function needsDisk(ready: Ready): boolean {
  return ready.entries.length > 0 || ready.snapshot !== undefined || ready.mustSync;
}

function sameVote(a: StoredHardState, b: StoredHardState): boolean {
  return a.term === b.term && a.vote === b.vote;
}
