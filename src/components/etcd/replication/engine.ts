/**
 * The replicated store. As a leader it decides requests in memory as they arrive, ahead of the log; what has been decided in one turn is
 * proposed together. As a follower it takes over what the leader has decided. Either way only what is committed is shown, but for relaxed writes
 * of a member that is alone.
 */

import { EventType, splitEvents } from '../../../api/etcd/event.ts';
import type { RangeRequest, TxnRequest } from '../../../api/etcd/kv.ts';
import type { Clock, Timer } from '../../../base/clock.ts';
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { MvccError } from '../../../core/mvcc/errors.ts';
import type { Lease } from '../../../core/mvcc/leases.ts';
import {
  type DecidedRevision,
  type Decision,
  Machine,
  type Pinned,
  type RangeAnswer,
  ValuesNeeded,
} from '../../../core/mvcc/machine.ts';
import type { Version } from '../../../core/mvcc/version.ts';
import type { ConfChange, ConfState, Entry, NodeId, SnapshotMeta } from '../../../core/raft/index.ts';
import { RaftError } from '../../../core/raft/index.ts';
import { Cluster } from '../membership/cluster.ts';
import {
  EntryKind,
  type LeaseRecord,
  type LogState,
  type SnapshotHead,
  type StoredHardState,
  type StoreIdentity,
  type StoreLog,
} from '../port.ts';
import { AppliedState } from './applied.ts';
import { type CompactionTimes, Compactor } from './compactor.ts';
import { type Command, decodeCommand, toStored } from './entry-codec.ts';
import { Pending } from './pending.ts';
import type { Replica, ReplicatedMachine, Rider } from './replica.ts';

export interface EngineDeps {
  readonly storage: StoreLog;
  readonly clock: Clock;
  readonly log: Log;
  readonly cacheBytes: number;
  readonly flushIntervalMs: number;
  /** Entries that stay in the log for members who are a little behind. */
  readonly keepEntries: number;
  /** Runs something after what has arrived in this turn has been looked at. */
  readonly defer: (run: () => void) => void;
  readonly onPublish: (revisions: readonly DecidedRevision[]) => void;
  /** The store has been replaced by a snapshot: history may have gaps. */
  readonly onReplaced: (reached: number) => void;
  readonly onLeadership: () => void;
  readonly onMembers: () => void;
  /** The disk is full; called again now and then while it is. */
  readonly onFull: () => void;
  /** A range took this long, in milliseconds, without the wait for what is committed. */
  readonly onRead: (ms: number) => void;
  /** A request that writes was decided, or refused, in this time. */
  readonly onDecided: (request: TxnRequest, success: boolean, ms: number) => void;
  readonly compaction: CompactionTimes;
  /** Proposals have come to nothing: dropped, or lost with leadership. */
  readonly onProposalsFailed: (count: number) => void;
  /** What is committed could not be found out in the time that a request has. */
  readonly onReadTimedOut: () => void;
  readonly onAuth: AuthState;
  readonly streamSnapshot: (to: NodeId, index: number) => void;
  /** Gives the complete snapshot that stands ready for `index`. */
  readonly takeSnapshot: (index: number) => { readonly id: string; readonly head: SnapshotHead };
}

interface AppliedWaiter {
  readonly index: number;
  resolve(): void;
}

export interface WriteOptions {
  readonly relaxed: boolean;
  /** It helps to free the disk, or keeps a node alive: taken also while the disk is full or the quota exceeded, as long as the reserve lasts. */
  readonly reserve: boolean;
}

/** Users and permissions, kept by whoever understands them. */
export interface AuthState {
  /** A committed command. Whether the state has changed. */
  apply(command: Uint8Array): boolean;
  /** Whether a command may change what somebody may do. */
  changesRights(command: Uint8Array): boolean;
  export(): Uint8Array;
  import(state: Uint8Array): void;
}

/**
 * Who asks for so many values at once has those that had to be read kept in memory. Who asks for more is passing through everything there is: it would
 * push out what others ask for, and what it is about to come to itself.
 */
const MOST_KEPT = 64;
/** How often the values of an operation may be gone when they have been read: more than once would be a compaction each millisecond. */
const MOST_TRIES = 10;
/** etcd's bound on requests that have been accepted and not answered. */
const MAX_WAITING = 5000;
const MAX_WAITING_BYTES = 64 << 20;
/** Revisions that relaxed writes may use before the next batch has to move the mark on disk. */
const RESERVE = 2000;
const PAST_BYTES = 8 << 20;
/** Entries and bytes after which the disk is told what has been applied; as many are read again at start. */
const APPLIED_ENTRIES = 1000;
const APPLIED_BYTES = 4 << 20;
const SPACE_RETRY_MS = 1000;
/** What one write may take of the reserve: a large object must not use it up for all others. */
const RESERVE_WRITE_BYTES = 64 << 10;
const FLUSH_TRIES = 3;
export const ALARM_NO_SPACE = 1;
export const ALARM_CORRUPT = 2;

const CLUSTER = 'cluster';
const AUTH = 'auth';

export class Engine implements ReplicatedMachine {
  readonly machine: Machine;
  readonly cluster = new Cluster();
  readonly #deps: EngineDeps;
  readonly #applied = new AppliedState();
  readonly #compactor: Compactor;
  #replica: Replica | undefined;
  #identity: StoreIdentity | undefined;
  #collecting: Pending[] = [];
  #collectingBytes = 0;
  /** Proposed and not applied, in the order of the log. */
  #proposed: Pending[] = [];
  #scheduled = false;
  #flushTimer: Timer | undefined;
  #reserved = 0;
  #relaxedInUse = false;
  #full = false;
  /** Bytes of writes that are still taken although the disk is full. */
  #reserveLeft = 0;
  #rights: Promise<void> | undefined;
  #spaceTimer: Timer | undefined;
  #recovering: Promise<void> | undefined;
  #stopped = false;
  #ready = false;
  /** The entry with which this member's leadership began. */
  #leadsFrom = 0;
  /** The last change of the configuration that was proposed here. */
  #confIndex = 0;
  /** The last change of the configuration that was applied. */
  #confApplied = 0;
  #readTimedOutMs = Number.NEGATIVE_INFINITY;
  #appliedRevision = 0;
  #bytesSinceApplied = 0;
  #appliedWaiters: AppliedWaiter[] = [];
  #leadershipWaiters: Array<() => void> = [];
  /** Own revisions that are applied and not shown yet. */
  readonly #settle: Pending[] = [];

  constructor(deps: EngineDeps) {
    this.#deps = deps;
    this.machine = new Machine({ currentBytes: deps.cacheBytes, pastBytes: Math.min(PAST_BYTES, deps.cacheBytes) });
    this.#compactor = new Compactor({
      machine: this.machine,
      clock: deps.clock,
      log: deps.log,
      keep: deps.keepEntries,
      times: deps.compaction,
      replica: () => this.replica,
      wantWrite: () => this.#replica?.wantWrite(),
    });
  }

  get replica(): Replica {
    if (this.#replica === undefined) throw new CodedError('closed', 'the store is not open');
    return this.#replica;
  }

  get identity(): StoreIdentity {
    if (this.#identity === undefined) throw new CodedError('closed', 'the store is not open');
    return this.#identity;
  }

  /** True while the disk has no room. */
  get full(): boolean {
    return this.#full;
  }

  /** Whether this member leads and has applied everything from before its term. */
  get leads(): boolean {
    return this.#ready;
  }

  /** Whether who belongs to the cluster, as it is known here, is on this disk and no change of it is under way. */
  get membersWritten(): boolean {
    return this.#applied.stored >= this.#confApplied && this.cluster.conf.outgoing.length === 0;
  }

  get pendingProposals(): number {
    return this.#proposed.length + this.#collecting.length;
  }

  /** Loads what the disk holds up to what it knows to be applied. */
  async load(state: LogState): Promise<void> {
    await this.#loadInto(this.machine, state);
    this.#reserved = state.reserved;
    this.#identity = state.identity;
    this.#applied.reset(state.applied, state.compacted);
    this.#compactor.loaded(state.compacted, state.applied);
  }

  async #loadInto(machine: Machine, state: LogState): Promise<void> {
    const cluster = state.documents.get(CLUSTER);
    if (cluster !== undefined) this.cluster.decode(cluster);
    const auth = state.documents.get(AUTH);
    if (auth !== undefined) this.#deps.onAuth.import(auth);

    await this.#deps.storage.load(state.applied, (rows) => {
      for (const row of rows) machine.load(row.revision, splitEvents(row.body));
    });
    machine.loaded(state.compacted);
    this.#appliedRevision = machine.head;
    const now = this.#deps.clock.monotonicMs();
    for (const { id, ttlSeconds, remainingSeconds } of state.leases) {
      const lease = machine.leases.grant(id, ttlSeconds, now);
      if (remainingSeconds === undefined) continue;
      lease.checkpoint = remainingSeconds;
      machine.leases.setRemaining(id, remainingSeconds * 1000, now);
    }
    machine.attachLeases();
  }

  begin(replica: Replica): void {
    this.#replica = replica;
    replica.start();
    this.#compactor.begin();
  }

  /** Makes everything durable. Requests that come later are refused. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    const isAble = (): boolean => this.#ready && !this.#full && this.#replica?.ended === false;
    for (let tries = 0; isAble() && this.#collecting.length > 0 && tries < FLUSH_TRIES; tries += 1) {
      this.#propose();
      // What has been shown and did not fit behind what is under way.
      if (this.#collecting.length > 0) await Promise.allSettled(this.#proposed.slice(-1).map((last) => last.wait()));
    }
    this.#stopped = true;
    this.#flushTimer?.cancel();
    this.#spaceTimer?.cancel();
    this.#compactor.stop();
    // What is under way alone is finished; with others around it may take for ever.
    if (isAble() && this.#replica?.alone) {
      await Promise.allSettled(this.#proposed.slice(-1).map((last) => last.wait()));
      // A mark above the head is for the case that we do not come to this point.
      if (this.#reserved > this.machine.head || this.#applied.dirty) this.#replica.wantWrite();
    }
    await this.#replica?.stop();
    this.#lose(new CodedError('closed', 'the store is stopping'));
    for (const waiter of this.#appliedWaiters.splice(0)) waiter.resolve();
    this.#wakeLeadership();
  }

  /** A linearizable read: everything acknowledged before the call is in it. Throws MvccError, CodedError 'no-leader'. */
  async range(request: RangeRequest): Promise<{ readonly answer: RangeAnswer; readonly revision: number }> {
    if (!request.serializable && !this.#current) await this.linearizable();
    const { clock, onRead } = this.#deps;
    const began = clock.monotonicMs();
    let pinned: Map<Version, Buffer> | undefined;
    for (let tries = 1; ; tries += 1) {
      try {
        const answer = this.machine.range(request, pinned);
        onRead(clock.monotonicMs() - began);
        return { answer, revision: this.machine.visible };
      } catch (error) {
        if (!(error instanceof ValuesNeeded)) throw error;
        pinned = await this.#pin(error, pinned, tries);
      }
    }
  }

  /** What is visible here is what is committed: nobody else can have committed anything. */
  get #current(): boolean {
    return this.#ready && this.replica.alone;
  }

  /**
   * What this member shows before it is written can only be lost together with all memory of it: nobody else has another history, or is about to
   * begin one. A learner's reads ask for what is committed, so with one there is somebody else already.
   */
  get #solitary(): boolean {
    if (!this.#current) return false;
    return this.replica.conf.learners.length === 0 && this.replica.applied >= this.#confIndex;
  }

  /** Resolves when everything acknowledged before the call is visible here. Throws CodedError 'no-leader' when that takes too long. */
  async linearizable(): Promise<void> {
    const { clock } = this.#deps;
    const deadline = clock.monotonicMs() + this.requestTimeoutMs;
    for (;;) {
      try {
        await this.replica.readIndex();
        return;
      } catch (error) {
        const again = error instanceof CodedError && error.code === 'no-leader' && clock.monotonicMs() < deadline;
        if (!again && clock.monotonicMs() >= deadline) this.#readTimedOut();
        if (!again || this.#stopped) throw error;
        await this.leadershipChange(Math.min(this.replica.electionMs, deadline - clock.monotonicMs()));
      }
    }
  }

  /** All reads that wait at the same time ask one question. */
  #readTimedOut(): void {
    const now = this.#deps.clock.monotonicMs();
    if (now - this.#readTimedOutMs < this.requestTimeoutMs) return;
    this.#readTimedOutMs = now;
    this.#deps.onReadTimedOut();
  }

  /** As `linearizable`; nobody is asked where nobody else could know better. */
  async upToDate(): Promise<void> {
    if (!this.#current) await this.linearizable();
  }

  /** Whether somebody leads, or does so before two elections have passed. */
  async isLed(): Promise<boolean> {
    if (this.replica.leader === undefined) await this.leadershipChange(2 * this.replica.electionMs);
    return this.replica.leader !== undefined;
  }

  /** etcd's: five seconds for the disk and two elections. Source: etcd server/config. */
  get requestTimeoutMs(): number {
    return 5000 + 2 * this.replica.electionMs;
  }

  /** Resolves at the next change of leadership here, or after `mostMs`. */
  leadershipChange(mostMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#deps.clock.setTimer(Math.max(1, mostMs), resolve);
      this.#leadershipWaiters.push(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  /** Resolves when `index` has been applied here, or this member stops. */
  appliedAt(index: number): Promise<void> {
    if (this.replica.applied >= index) return Promise.resolve();
    return new Promise((resolve) => {
      this.#appliedWaiters.push({ index, resolve });
    });
  }

  /** As `appliedAt`, but no longer than a request may take. */
  appliedInTime(index: number): Promise<void> {
    if (this.replica.applied >= index) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#deps.clock.setTimer(this.requestTimeoutMs, () => {
        this.#appliedWaiters = this.#appliedWaiters.filter((each) => each !== waiter);
        resolve();
      });
      const waiter = {
        index,
        resolve: () => {
          timer.cancel();
          resolve();
        },
      };
      this.#appliedWaiters.push(waiter);
    });
  }

  /**
   * Decides and, if it wrote, makes durable. Throws MvccError; CodedError 'no-space', 'too-many-requests', 'closed', 'not-leader' (nothing has happened,
   * the leader can do it), 'leader-failed' (nobody knows whether it has happened).
   */
  async txn(request: TxnRequest, options: WriteOptions): Promise<Decision> {
    const readOnly = this.machine.isReadOnly(request);
    if (readOnly && !this.#current) await this.linearizable();
    let pinned: Map<Version, Buffer> | undefined;
    for (let tries = 1; ; tries += 1) {
      try {
        if (readOnly) return this.machine.read(request, pinned);
        return await this.#write(request, options, pinned);
      } catch (error) {
        if (!(error instanceof ValuesNeeded)) throw error;
        pinned = await this.#pin(error, pinned, tries);
      }
    }
  }

  /**
   * As `values`, for an operation that is repeated with them. Undefined when some have been overwritten and discarded since it asked: it finds what is there
   * now, or that its revision has been compacted. Whoever asks for what is there now is never to hear that.
   */
  async #pin(
    needed: ValuesNeeded,
    known: Pinned | undefined,
    tries: number,
  ): Promise<Map<Version, Buffer> | undefined> {
    try {
      return await this.values(needed, known);
    } catch (error) {
      if (!(error instanceof MvccError && error.code === 'compacted') || tries >= MOST_TRIES) throw error;
      return undefined;
    }
  }

  /** Values that have left memory, from the log. Throws MvccError 'compacted' when one has been discarded meanwhile. */
  async values(
    { versions, among }: Pick<ValuesNeeded, 'versions' | 'among'>,
    known?: Pinned,
  ): Promise<Map<Version, Buffer>> {
    const pinned = new Map(known);
    const kept = among <= MOST_KEPT;
    const wanted = new Map<number, Version[]>();
    for (const version of versions) {
      const same = wanted.get(version.revision);
      if (same === undefined) wanted.set(version.revision, [version]);
      else same.push(version);
    }
    const revisions = [...wanted.keys()];
    const rows = await this.#deps.storage.read(revisions);
    revisions.forEach((revision, i) => {
      const row = rows[i];
      if (row === undefined) throw new MvccError('compacted');
      const events = splitEvents(row);
      for (const version of wanted.get(revision) ?? []) {
        // One revision may write a key twice: a delete and a put.
        const event = events.find(
          ({ key, version: count, type }) =>
            key === version.key && (type === EventType.delete ? 0 : count) === version.version,
        );
        if (event === undefined) throw new MvccError('compacted');
        pinned.set(version, event.kv);
        if (kept) this.machine.refill(version, event.kv);
      }
    });
    return pinned;
  }

  async grantLease(id: bigint, ttlSeconds: number): Promise<{ readonly id: bigint; readonly ttlSeconds: number }> {
    if (this.#full) await this.#recoverSpace();
    this.#admit(true);
    const granted = this.machine.leases.checked(id, ttlSeconds);
    await this.#add(Pending.command({ type: 'grant', id, ttlSeconds: granted }));
    return { id, ttlSeconds: granted };
  }

  async revokeLease(id: bigint): Promise<void> {
    this.#admit(false);
    const lease = this.machine.leases.get(id);
    if (lease === undefined) throw new MvccError('lease-not-found');
    // Either way it is gone from here on: no key that is written later may hang on it.
    const decided = this.machine.revoke(id);
    if (decided !== undefined) await this.#add(Pending.revision(decided, false, lease));
    else await this.#add(Pending.command({ type: 'revoke', id }, lease));
  }

  /** Whoever may expire leases. Throws CodedError 'not-leader'. */
  requireLeader(): void {
    if (!this.#ready || this.#stopped) throw NOT_LEADER;
  }

  /** Discards history before `revision`; with `physical`, resolves when that is done. Throws MvccError. */
  async compact(revision: number, physical: boolean): Promise<void> {
    this.#admit(false);
    this.machine.checkCompact(revision);
    await this.#add(Pending.command({ type: 'compact', revision }));
    if (physical) await this.#compactor.settled();
  }

  /** Replicates a command and resolves when it has been applied here. Throws like `txn`. */
  async command(command: Command): Promise<void> {
    this.#admit(false);
    const added = this.#add(Pending.command(command));
    if (command.type === 'auth' && this.#deps.onAuth.changesRights(command.command)) this.#awaitRights(added);
    await added;
  }

  /**
   * Settles when no change of rights is under way that this leader has proposed; undefined: there is none. Others may have applied one, and told of it,
   * before a leader whose own disk stands still has: what it decides meanwhile it would decide by rights of before.
   */
  get rightsSettled(): Promise<void> | undefined {
    return this.#rights;
  }

  #awaitRights(change: Promise<void>): void {
    const settled = Promise.allSettled([this.#rights, change]).then(() => {
      if (this.#rights === settled) this.#rights = undefined;
    });
    this.#rights = settled;
  }

  /** Throws RaftError; CodedError 'too-many-requests', 'not-leader', 'leader-failed'. Resolves when it has been applied here. */
  async changeConf(change: ConfChange): Promise<void> {
    this.requireLeader();
    // Changes come after whatever has been decided before them.
    this.#propose();
    // Behind it in the log, what has been shown already could be lost with the leadership that others have a say in from then on.
    if (this.#collecting.length > 0) throw tooMany();
    const { index } = this.replica.proposeConfChange(change);
    this.#confIndex = index;
    const { term } = this.replica;
    await this.appliedAt(index);
    // Nobody knows what becomes of it when this member stops.
    if (this.replica.term !== term || this.replica.applied < index) throw leaderFailed();
  }

  /** The newest revision, or `wanted` when given, once it is on disk and compaction has settled. Throws MvccError for revisions that cannot be read. */
  async settledRevision(wanted: number): Promise<number> {
    const { machine } = this;
    if (wanted > machine.visible) throw new MvccError('future-revision');
    if (wanted > 0 && wanted < machine.compacted) throw new MvccError('compacted');
    await this.#compactor.settled();
    await this.#proposed.at(-1)?.wait();
    return wanted > 0 ? wanted : machine.visible;
  }

  /** What a snapshot for another member holds beside the rows; those stay as they are from `ready` until `release`. */
  pinSnapshot(): { readonly head: SnapshotHead; readonly ready: Promise<void>; release(): void } {
    const { replica } = this;
    const { release, ready } = this.#compactor.pause();
    // As far as others know, a lease whose end is not committed has not ended.
    const leases = [...this.machine.leases.all()];
    for (const { lease } of [...this.#proposed, ...this.#collecting]) if (lease !== undefined) leases.push(lease);
    const head: SnapshotHead = {
      position: { index: replica.applied, term: replica.raft.termAt(replica.applied) ?? 0 },
      revision: this.#appliedRevision,
      compacted: this.machine.compacted,
      clusterId: this.identity.clusterId,
      // No more of what is left than is written elsewhere: what is not in the log may be renewed behind this.
      leases: leases.map(recordOf),
      documents: this.#documents(),
    };
    return { head, ready, release };
  }

  #documents(): ReadonlyMap<string, Uint8Array> {
    return new Map([
      [CLUSTER, this.cluster.encode()],
      [AUTH, this.#deps.onAuth.export()],
    ]);
  }

  // What the replica calls.

  apply(entries: readonly Entry[], conf: ConfState | undefined): void {
    let published = 0;
    for (const entry of entries) {
      const own = this.#proposed[0];
      if (own !== undefined && own.index === entry.index && own.term === entry.term) {
        this.#proposed.shift();
        if (own.decided !== undefined) published = own.decided.revision;
        else if (published > 0) {
          this.#publish(published);
          published = 0;
        }
        this.#applyOwn(own);
      } else {
        if (published > 0) this.#publish(published);
        published = 0;
        if (entry.kind === 'data') this.#applyForeign(entry);
        else if (entry.kind === 'conf') this.#applyConf(entry.index, entry.change, conf);
      }
      if (entry.kind === 'data') this.#bytesSinceApplied += entry.data.length;
    }
    if (published > 0) this.#publish(published);
    const last = entries.at(-1);
    if (last === undefined) return;
    if (this.#leadsFrom > 0 && !this.#ready && last.index >= this.#leadsFrom) this.#caughtUp();
    this.#settleApplied(last.index);
  }

  /** Own items are answered when what they wrote is visible; here the disk has it and a quorum has it. */
  #applyOwn(own: Pending): void {
    if (own.lease !== undefined) this.#applied.revoked(own.lease.id);
    if (own.decided !== undefined) {
      this.#appliedRevision = own.decided.revision;
      this.#settle.push(own);
      return;
    }
    if (own.lease !== undefined) {
      own.resolve();
      return;
    }
    try {
      this.#applyCommand(own.command as Command, own.index);
      own.resolve();
    } catch (error) {
      own.reject(error instanceof Error ? error : new Error(messageOf(error)));
    }
  }

  #applyForeign(entry: Entry): void {
    if (this.#proposed.length > 0 || this.#collecting.length > 0) this.#lose(leaderFailed());
    const stored = toStored(entry);
    if (stored.kind === EntryKind.command) {
      try {
        const command = decodeCommand(stored.body);
        this.#applyCommand(command, stored.index);
        if (command.type === 'checkpoint') this.#learnRemaining(command.leases);
      } catch (error) {
        // Refused in the same way everywhere.
        if (!(error instanceof MvccError)) throw error;
      }
      return;
    }
    const accepted = this.machine.accept(stored.revision, splitEvents(stored.body));
    this.machine.stored(stored.revision);
    this.#appliedRevision = stored.revision;
    if (stored.lease !== 0n) {
      this.machine.leases.remove(stored.lease);
      this.#applied.revoked(stored.lease);
    }
    this.#deps.onPublish([accepted]);
  }

  #applyCommand(command: Command, index: number): void {
    const { machine, cluster } = this;
    const now = this.#deps.clock.monotonicMs();
    switch (command.type) {
      case 'grant':
        this.#applied.granted(recordOf(machine.leases.grant(command.id, command.ttlSeconds, now)));
        return;
      case 'revoke':
        if (machine.leases.remove(command.id) === undefined) throw new MvccError('lease-not-found');
        this.#applied.revoked(command.id);
        return;
      case 'checkpoint':
        for (const { id, remainingSeconds } of command.leases) {
          const lease = machine.leases.get(id);
          if (lease === undefined) continue;
          lease.checkpoint = remainingSeconds < lease.ttlSeconds ? remainingSeconds : undefined;
          this.#applied.granted(recordOf(lease));
        }
        return;
      case 'compact':
        machine.compact(command.revision);
        this.#applied.compactedAt(command.revision);
        this.#compactor.compacted(index);
        return;
      case 'auth':
        if (this.#deps.onAuth.apply(command.command)) this.#applied.document(AUTH, this.#deps.onAuth.export());
        return;
      case 'alarm':
        cluster.setAlarm(command.raised, command.member, command.alarm);
        break;
      case 'attributes':
        cluster.setAttributes(command.member, command.name, command.clientUrls);
        break;
      case 'peerUrls':
        cluster.setPeerUrls(command.member, command.peerUrls);
        break;
      case 'version':
        cluster.version = command.version;
        break;
    }
    this.#applied.document(CLUSTER, cluster.encode());
    this.#deps.onMembers();
  }

  /** Somebody else has written down what is left of leases, or that they have all of their time again: this member may have started again since. */
  #learnRemaining(leases: ReadonlyArray<{ readonly id: bigint; readonly remainingSeconds: number }>): void {
    const now = this.#deps.clock.monotonicMs();
    for (const { id, remainingSeconds } of leases) this.machine.leases.setRemaining(id, remainingSeconds * 1000, now);
  }

  #applyConf(index: number, change: ConfChange, conf: ConfState | undefined): void {
    this.cluster.applyConf(change, conf);
    this.#applied.document(CLUSTER, this.cluster.encode());
    this.#confApplied = index;
    // Whoever is removed waits for it, and whoever forgets it with the power may ask those for their vote who are gone.
    this.#deps.clock.setTimer(0, () => {
      if (!this.#stopped) this.#replica?.wantWrite();
    });
    this.#deps.onMembers();
  }

  #settleApplied(index: number): void {
    if (this.#appliedWaiters.length === 0) return;
    const left: AppliedWaiter[] = [];
    for (const waiter of this.#appliedWaiters) {
      if (waiter.index > index) left.push(waiter);
      else waiter.resolve();
    }
    this.#appliedWaiters = left;
  }

  leadershipChanged(leads: boolean): void {
    if (leads && this.#leadsFrom === 0) this.#leadsFrom = this.replica.raft.lastIndex;
    else if (!leads && this.#leadsFrom > 0) {
      this.#leadsFrom = 0;
      this.#confIndex = 0;
      this.#ready = false;
      this.#lose(leaderFailed());
    }
    this.#deps.onLeadership();
    this.#wakeLeadership();
  }

  /** Everything from before this member's leadership has been applied. */
  #caughtUp(): void {
    if (!this.replica.alone || this.#reserved <= this.machine.head) {
      this.#becomeReady();
      return;
    }
    // Relaxed writes may have been shown up to there and lost with the power: the log says for all time that those revisions are used.
    // Nothing more is set aside until there are such writes again, or this would never come to an end. The first revision behind those that may
    // have been shown is nobody's: who goes on from it has seen the last of them, and is told so.
    this.#relaxedInUse = false;
    const skipped = Pending.revision(this.machine.skipTo(this.#reserved + 2), false);
    this.#collect(skipped);
    this.#propose();
    this.#leadsFrom = skipped.index;
  }

  #becomeReady(): void {
    this.#ready = true;
    const { replica } = this;
    const { clock } = this.#deps;
    // Nobody could renew while nobody led.
    this.machine.leases.extend(replica.alone ? 0 : replica.electionMs, clock.monotonicMs());
    this.#deps.onLeadership();
    this.#wakeLeadership();
  }

  #wakeLeadership(): void {
    for (const wake of this.#leadershipWaiters.splice(0)) wake();
  }

  rider(): Rider | undefined {
    const { machine } = this;
    const base = this.#compactor.nextBase(this.replica.applied);
    const discards = this.#compactor.takeDiscards();
    const far =
      this.replica.applied - this.#applied.stored >= APPLIED_ENTRIES || this.#bytesSinceApplied >= APPLIED_BYTES;
    const withApplied = far || this.#applied.dirty || base !== undefined || this.#stopped;
    const reserved = this.#nextReserve(machine.head);
    if (!withApplied && discards.length === 0 && reserved === undefined) return undefined;
    if (withApplied) this.#bytesSinceApplied = 0;
    return {
      discards,
      ...(withApplied ? { applied: this.#applied.take(this.replica.applied) } : {}),
      ...(base === undefined ? {} : { base }),
      ...(reserved === undefined ? {} : { reserved }),
    };
  }

  #nextReserve(head: number): number | undefined {
    // One that has not come to lead since it was started has not used up yet what may have been shown before.
    if (this.#stopped) return this.#ready && this.#reserved > head ? head : undefined;
    return this.#relaxedInUse && this.#reserved - head < RESERVE / 2 ? head + RESERVE : undefined;
  }

  riderWritten(rider: Rider): void {
    if (rider.applied !== undefined) this.#applied.written(rider.applied);
    if (rider.reserved !== undefined) {
      this.#reserved = rider.reserved;
      this.#publishRelaxed();
    }
    this.#compactor.written(rider);
  }

  /** Relaxed writes that stand right behind what is visible need not wait for a flush. */
  #publishRelaxed(): void {
    if (!this.#solitary || this.#proposed.length > 0) return;
    let upTo = 0;
    for (const { decided, relaxed } of this.#collecting) {
      if (!relaxed || decided === undefined || decided.revision > this.#reserved) break;
      upTo = decided.revision;
    }
    if (upTo > 0) this.#show(upTo);
  }

  diskFull(full: boolean): void {
    if (full === this.#full) return;
    this.#full = full;
    this.#reserveLeft = full ? this.#deps.storage.reserveBytes() : 0;
    if (full) {
      this.#deps.log.error('the disk is full: writes are refused here until there is room');
      this.#deps.onFull();
      this.#awaitSpace();
    } else this.#deps.log.info('there is room on the disk again: writes are accepted');
  }

  #awaitSpace(): void {
    if (this.#stopped) return;
    this.#spaceTimer = this.#deps.clock.setTimer(SPACE_RETRY_MS, () => {
      void this.#recoverSpace().then(() => {
        if (!this.#full) return;
        this.#deps.onFull();
        this.#awaitSpace();
      });
    });
  }

  /** Looks whether there is room again. All who ask meanwhile share the answer. */
  #recoverSpace(): Promise<void> {
    this.#recovering ??= this.#deps.storage
      .recoverSpace()
      .then(
        (recovered) => {
          if (recovered) this.diskFull(false);
        },
        (error: unknown) => {
          if (!this.#stopped)
            this.#deps.log.warn('the room on the disk could not be looked at', { cause: messageOf(error) });
        },
      )
      .finally(() => {
        this.#recovering = undefined;
      });
    return this.#recovering;
  }

  streamSnapshot(to: NodeId, index: number): void {
    this.#deps.streamSnapshot(to, index);
  }

  async install(snapshot: SnapshotMeta, hardState: StoredHardState): Promise<void> {
    const { id, head } = this.#deps.takeSnapshot(snapshot.index);
    const state = await this.#deps.storage.install(id, head, hardState);
    const machine = new Machine({
      currentBytes: this.#deps.cacheBytes,
      pastBytes: Math.min(PAST_BYTES, this.#deps.cacheBytes),
    });
    await this.#loadInto(machine, state);
    const reached = this.machine.visible;
    this.machine.become(machine);
    this.#reserved = state.reserved;
    this.#applied.reset(state.applied, state.compacted);
    this.#compactor.loaded(state.compacted, state.applied);
    this.#deps.onMembers();
    this.#deps.onReplaced(reached);
    this.#settleApplied(snapshot.index);
    this.#deps.log.info('the store has been replaced by a snapshot', {
      index: snapshot.index,
      revision: machine.visible,
    });
  }

  // Deciding.

  async #write(request: TxnRequest, options: WriteOptions, pinned: Pinned | undefined): Promise<Decision> {
    const grows = writesMore(request);
    if (grows && this.#full) await this.#recoverSpace();
    this.#admit(grows && !this.#fromReserve(request, options));
    const before = this.machine.head;
    const leadsFrom = this.#leadsFrom;
    const decision = this.#decide(request, pinned);
    const { decided } = decision;
    if (decided === undefined) {
      // What it read may not be committed yet: the answer waits for that; and this member may have been replaced meanwhile.
      if (before > this.machine.visible) await (this.#collecting.at(-1) ?? this.#proposed.at(-1))?.wait();
      if (!this.#current) await this.linearizable();
      // The question may have been put to another leader: what that one knows is not in the answer, and nothing has been written.
      if (this.#leadsFrom !== leadsFrom) throw NOT_LEADER;
      return decision;
    }
    const asRelaxed = options.relaxed && !this.#full && this.#solitary;
    if (asRelaxed) this.#relaxedInUse = true;
    const pending = Pending.revision(decided, asRelaxed);
    if (asRelaxed && this.machine.visible === before && decided.revision <= this.#reserved) {
      this.#collect(pending);
      this.#show(decided.revision);
      this.#armFlush();
      return decision;
    }
    await this.#add(pending);
    return decision;
  }

  #decide(request: TxnRequest, pinned: Pinned | undefined): Decision {
    const { clock, onDecided } = this.#deps;
    const began = clock.monotonicMs();
    try {
      const decision = this.machine.decide(request, pinned);
      onDecided(request, true, clock.monotonicMs() - began);
      return decision;
    } catch (error) {
      // Of what has to be read first, the second time counts.
      if (!(error instanceof ValuesNeeded)) onDecided(request, false, clock.monotonicMs() - began);
      throw error;
    }
  }

  /** Whether the room that is kept for it takes the request; without that it would be refused. */
  #fromReserve(request: TxnRequest, { reserve }: WriteOptions): boolean {
    if (!reserve) return false;
    if (!this.#full) return true;
    const bytes = bytesOf(request);
    if (bytes > RESERVE_WRITE_BYTES || bytes > this.#reserveLeft) return false;
    this.#reserveLeft -= bytes;
    return true;
  }

  #admit(grows: boolean): void {
    if (this.#stopped) throw new CodedError('closed', 'the store is stopping');
    this.requireLeader();
    if (grows && (this.#full || this.cluster.alarms.some(({ alarm }) => alarm === ALARM_NO_SPACE)))
      throw new CodedError('no-space', 'no space left on the device');
    const waiting = this.#collecting.length + this.#proposed.length;
    if (waiting >= MAX_WAITING || this.#collectingBytes > MAX_WAITING_BYTES) {
      throw new CodedError('too-many-requests', 'too many requests are waiting for the disk');
    }
  }

  #collect(pending: Pending): void {
    this.#collecting.push(pending);
    this.#collectingBytes += pending.bytes;
  }

  #add(pending: Pending): Promise<void> {
    this.#collect(pending);
    this.#schedule();
    return pending.wait();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // After this turn's sockets have been read: what arrived together is proposed together.
    this.#deps.defer(() => {
      this.#scheduled = false;
      this.#propose();
    });
  }

  #armFlush(): void {
    if (this.#flushTimer !== undefined || this.#stopped) return;
    this.#flushTimer = this.#deps.clock.setTimer(this.#deps.flushIntervalMs, () => {
      this.#flushTimer = undefined;
      this.#propose();
    });
  }

  #propose(): void {
    const batch = this.#collecting;
    if (batch.length === 0 || this.#stopped) return;
    this.#collecting = [];
    this.#collectingBytes = 0;
    try {
      // Before the proposal: alone on a fast disk it may be applied before the call returns.
      const { lastIndex, term } = this.replica.raft;
      for (const [i, pending] of batch.entries()) {
        pending.index = lastIndex + 1 + i;
        pending.term = term;
      }
      this.#proposed.push(...batch);
      this.replica.propose(batch.map((pending) => pending.encode()));
    } catch (error) {
      if (!(error instanceof RaftError)) throw error;
      this.#proposed.length -= batch.length;
      // What has been shown is not taken back: it is proposed when there is room.
      const { visible } = this.machine;
      const shown = batch.findIndex(({ relaxed, decided }) => !relaxed || (decided?.revision ?? 0) > visible);
      const kept = batch.slice(0, shown < 0 ? batch.length : shown);
      for (const pending of kept) this.#collect(pending);
      if (kept.length > 0) this.#armFlush();
      this.#takeBack(batch.slice(kept.length), error.code === 'Overloaded' ? tooMany() : NOT_LEADER);
    }
  }

  /** Nothing of `batch` has happened, and it is the last that was decided. */
  #takeBack(batch: readonly Pending[], error: Error): void {
    if (!this.#stopped && batch.length > 0) this.#deps.onProposalsFailed(batch.length);
    const first = batch.find((pending) => pending.decided !== undefined)?.decided;
    for (const { lease } of batch) if (lease !== undefined) this.machine.leases.restore(lease);
    if (first !== undefined) this.machine.rollBack(Math.max(first.revision - 1, this.machine.visible));
    for (const pending of batch) pending.reject(error);
  }

  /** Leadership is gone: what was proposed may or may not come back as the log of another. */
  #lose(error: Error): void {
    const lost = this.#proposed;
    const never = this.#collecting;
    this.#proposed = [];
    this.#collecting = [];
    this.#collectingBytes = 0;
    this.#takeBack([...lost, ...never], error);
  }

  #publish(revision: number): void {
    this.machine.stored(revision);
    this.#show(revision);
    for (const own of this.#settle.splice(0)) own.resolve();
  }

  #show(revision: number): void {
    const published = this.machine.publish(revision);
    if (published.length > 0) this.#deps.onPublish(published);
  }
}

function recordOf({ id, ttlSeconds, checkpoint }: Lease): LeaseRecord {
  return { id, ttlSeconds, ...(checkpoint === undefined ? {} : { remainingSeconds: checkpoint }) };
}

/** While the disk is full, what only deletes is let through: it is the way out. */
function writesMore(request: TxnRequest): boolean {
  const grows = (operations: TxnRequest['success']): boolean =>
    operations.some((operation) => operation.kind === 'put' || (operation.kind === 'txn' && writesMore(operation.txn)));
  return grows(request.success) || grows(request.failure);
}

function bytesOf(request: TxnRequest): number {
  let bytes = 0;
  for (const operation of [...request.success, ...request.failure]) {
    if (operation.kind === 'put') bytes += operation.put.key.length + operation.put.value.length;
    else if (operation.kind === 'txn') bytes += bytesOf(operation.txn);
  }
  return bytes;
}

/** One for all: each write through a follower throws it, and looking where from would cost as much as passing the write on. */
const NOT_LEADER = new CodedError('not-leader', 'this member does not lead');
const tooMany = (): CodedError => new CodedError('too-many-requests', 'too many requests wait to be committed');
const leaderFailed = (): CodedError =>
  new CodedError('leader-failed', 'leadership was lost before the outcome was known');
