/**
 * Replicated store. The leader evaluates requests in memory as they arrive, ahead of the log (proposer.ts). Every
 * member applies committed entries (applier.ts). Only committed revisions are visible, except relaxed writes of a
 * single member.
 */

import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { splitEvents } from '../core/messages/event.ts';
import type { RangeRequest, TxnRequest } from '../core/messages/kv.ts';
import { MvccError } from '../core/mvcc/errors.ts';
import { type Decision, Machine, type Pinned, type RangeAnswer, ValuesNeeded } from '../core/mvcc/machine.ts';
import type { Version } from '../core/mvcc/version.ts';
import type { ConfChange, ConfState, Entry, NodeId, SnapshotMeta } from '../core/raft/index.ts';
import type { LogState, SnapshotHead, StoredHardState, StoreIdentity, StoreLog } from '../disk/port.ts';
import { Cluster } from '../membership/cluster.ts';
import { AppliedState } from './applied.ts';
import { Applier, type AuthState, Document } from './applier.ts';
import type { EngineEvents } from './engine-events.ts';
import { type CompactionTimes, Compactor } from './maintenance/compactor.ts';
import { Leases } from './maintenance/leases.ts';
import { DiskSpace, type WriteOptions } from './maintenance/space.ts';
import type { Command } from './peers/entry-codec.ts';
import type { SnapshotTransfer } from './peers/snapshot-transfer.ts';
import { Pending } from './pending.ts';
import { Proposer } from './proposer.ts';
import { Reads } from './reads.ts';
import { leaderFailed, notLeader, tooMany } from './refusals.ts';
import type { Replica } from './replica.ts';
import type { ReplicatedMachine, WrittenState } from './replica-deps.ts';
import type { StoreView } from './store-view.ts';
import { AppliedWaiters, LeadershipWaiters, PermissionChanges } from './waiters.ts';

export interface EngineDeps {
  readonly storage: StoreLog;
  readonly clock: Clock;
  readonly log: Log;
  readonly cacheBytes: number;
  readonly flushIntervalMs: number;
  /** Number of entries kept in the log for slow followers. */
  readonly keepEntries: number;
  /** Runs a callback after the requests of this event loop turn have been processed. */
  readonly defer: (run: () => void) => void;
  readonly events: EngineEvents;
  /** Called with the duration of a range in milliseconds, without the wait for ReadIndex. */
  readonly onRead: (ms: number) => void;
  /** Called with the time in milliseconds in which a write request was evaluated or rejected. */
  readonly onDecided: (request: TxnRequest, success: boolean, ms: number) => void;
  readonly compaction: CompactionTimes;
  /** Called when proposals failed: dropped, or lost with leadership. */
  readonly onProposalsFailed: (count: number) => void;
  /** Called when ReadIndex did not succeed within the request timeout. */
  readonly onReadTimedOut: () => void;
}
const PAST_BYTES = 8 << 20;
/** Number of entries and bytes after which the applied index is persisted. A restart replays at most as many. */
const APPLIED_ENTRIES = 1000;
const APPLIED_BYTES = 4 << 20;
const FLUSH_TRIES = 3;

export class Engine implements ReplicatedMachine, StoreView {
  readonly machine: Machine;
  readonly cluster = new Cluster();
  readonly leadership: LeadershipWaiters;
  readonly #deps: EngineDeps;
  readonly #applied = new AppliedState();
  readonly #appliedWaiters: AppliedWaiters;
  readonly #permissionChanges = new PermissionChanges();
  readonly #space: DiskSpace;
  readonly #reads: Reads;
  readonly #proposer: Proposer;
  readonly #leases: Leases;
  readonly #compactor: Compactor;
  readonly #applier: Applier;
  #auth: AuthState | undefined;
  #snapshots: SnapshotTransfer | undefined;
  #replica: Replica | undefined;
  #identity: StoreIdentity | undefined;
  #stopped = false;
  #ready = false;
  /** Index of the last entry when this member became leader. */
  #leadsFrom = 0;
  /** Index of the last configuration change proposed here. */
  #confIndex = 0;

  constructor(deps: EngineDeps) {
    const { storage, clock, log, events } = deps;
    const onPublish = events.published.emit;
    this.#deps = deps;
    this.machine = this.#newMachine();
    this.#appliedWaiters = new AppliedWaiters(clock);
    this.leadership = new LeadershipWaiters(clock);
    this.#space = new DiskSpace({ view: this, storage, clock, log, onFull: events.full.emit });
    this.#reads = new Reads({
      view: this,
      storage,
      clock,
      leadership: this.leadership,
      onRead: deps.onRead,
      onReadTimedOut: deps.onReadTimedOut,
    });
    this.#proposer = new Proposer({
      view: this,
      reads: this.#reads,
      space: this.#space,
      clock,
      flushIntervalMs: deps.flushIntervalMs,
      defer: deps.defer,
      onPublish,
      onDecided: deps.onDecided,
      onProposalsFailed: deps.onProposalsFailed,
    });
    const proposer = this.#proposer;
    const applied = this.#applied;
    this.#leases = new Leases({ view: this, proposer, space: this.#space, applied, clock });
    this.#compactor = new Compactor({
      machine: this.machine,
      clock,
      log,
      keep: deps.keepEntries,
      times: deps.compaction,
      replica: () => this.replica,
      requestWrite: () => this.#replica?.requestWrite(),
    });
    this.#applier = new Applier({
      view: this,
      proposer,
      leases: this.#leases,
      applied,
      compactor: this.#compactor,
      auth: () => this.#authState,
      clock,
      onPublish,
      onMembers: events.members.emit,
    });
  }

  #newMachine(): Machine {
    const { cacheBytes } = this.#deps;
    return new Machine({ currentBytes: cacheBytes, pastBytes: Math.min(PAST_BYTES, cacheBytes) });
  }

  get replica(): Replica {
    if (this.#replica === undefined) throw new CodedError('closed', 'the store is not open');
    return this.#replica;
  }

  get identity(): StoreIdentity {
    if (this.#identity === undefined) throw new CodedError('closed', 'the store is not open');
    return this.#identity;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  /** True while the disk has no room. */
  get full(): boolean {
    return this.#space.full;
  }

  get leads(): boolean {
    return this.#ready;
  }

  /** Leader, if it is another member. */
  get remoteLeader(): NodeId | undefined {
    const { leader, id } = this.replica;
    return leader === id ? undefined : leader;
  }

  get leadsFrom(): number {
    return this.#leadsFrom;
  }

  get current(): boolean {
    return this.#ready && this.replica.alone;
  }

  get solitary(): boolean {
    if (!this.current) return false;
    return this.replica.conf.learners.length === 0 && this.replica.applied >= this.#confIndex;
  }

  get requestTimeoutMs(): number {
    return 5000 + 2 * this.replica.electionMs;
  }

  /** Whether the membership is on this disk and no change of it is in progress. */
  get membersWritten(): boolean {
    return this.#applied.stored >= this.#applier.confApplied && this.cluster.conf.outgoing.length === 0;
  }

  get pendingProposals(): number {
    return this.#proposer.pending;
  }

  get #authState(): AuthState {
    if (this.#auth === undefined) throw new CodedError('closed', 'the store is not open');
    return this.#auth;
  }

  get #transfer(): SnapshotTransfer {
    if (this.#snapshots === undefined) throw new CodedError('closed', 'the store is not open');
    return this.#snapshots;
  }

  /** Loads the stored state up to the applied index on disk. `auth`: replicated state of users. */
  async load(state: LogState, auth: AuthState): Promise<void> {
    this.#auth = auth;
    await this.#loadInto(this.machine, state);
    this.#identity = state.identity;
    this.#reset(state);
  }

  #reset(state: LogState): void {
    this.#proposer.loaded(state.reserved);
    this.#applied.reset(state.applied, state.compacted);
    this.#compactor.loaded(state.compacted, state.applied);
  }

  async #loadInto(machine: Machine, state: LogState): Promise<void> {
    const cluster = state.documents.get(Document.cluster);
    if (cluster !== undefined) this.cluster.decode(cluster);
    const auth = state.documents.get(Document.auth);
    if (auth !== undefined) this.#authState.import(auth);

    await this.#deps.storage.load(state.applied, (rows) => {
      for (const row of rows) machine.load(row.revision, splitEvents(row.body));
    });
    machine.loaded(state.compacted);
    this.#applier.revision = machine.head;
    this.#leases.load(machine, state.leases);
  }

  begin(replica: Replica, snapshots: SnapshotTransfer): void {
    this.#replica = replica;
    this.#snapshots = snapshots;
    replica.start();
    this.#compactor.begin();
  }

  /** Makes everything durable. Later requests are rejected. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    const proposer = this.#proposer;
    const isAble = (): boolean => this.#ready && !this.full && this.#replica?.ended === false;
    for (let tries = 0; isAble() && proposer.collected > 0 && tries < FLUSH_TRIES; tries += 1) {
      proposer.propose();
      // Relaxed writes that raft rejected as overloaded are collected again. The next try proposes them after the
      // proposals in progress.
      if (proposer.collected > 0) await proposer.lastSettled();
    }
    this.#stopped = true;
    proposer.stop();
    this.#space.stop();
    this.#compactor.stop();
    // A single member waits for its proposals. In a cluster with peers, the proposals may never be committed.
    if (isAble() && this.#replica?.alone) {
      await proposer.lastSettled();
      // A reservation above the head is required only after a crash, so this write lowers the reservation to the head.
      if (proposer.reserved > this.machine.head || this.#applied.dirty) this.#replica.requestWrite();
    }
    await this.#replica?.stop();
    proposer.end(new CodedError('closed', 'the store is stopping'));
    this.#appliedWaiters.stop();
    this.leadership.wake();
  }

  /**
   * Linearizable read, which includes everything acknowledged before the call. Throws MvccError, CodedError
   * 'no-leader'.
   */
  range(request: RangeRequest): Promise<{ readonly answer: RangeAnswer; readonly revision: number }> {
    return this.#reads.range(request);
  }

  /** Resolves when everything acknowledged before the call is visible here. Throws CodedError 'no-leader'. */
  linearizable(): Promise<void> {
    return this.#reads.linearizable();
  }

  /** Like `linearizable`, but without ReadIndex on a leader that is the only voter. */
  async upToDate(): Promise<void> {
    if (!this.current) await this.linearizable();
  }

  /**
   * Reads values that are not in memory from the log. Throws MvccError 'compacted' when a value was discarded in the
   * meantime.
   */
  values(needed: Pick<ValuesNeeded, 'versions' | 'among'>, known?: Pinned): Promise<Map<Version, Buffer>> {
    return this.#reads.values(needed, known);
  }

  /** Whether there is a leader now or within two election timeouts. */
  async isLed(): Promise<boolean> {
    if (this.replica.leader === undefined) await this.leadership.change(2 * this.replica.electionMs);
    return this.replica.leader !== undefined;
  }

  /** Resolves when `index` has been applied here, or this member stops. */
  appliedAt(index: number): Promise<void> {
    if (this.replica.applied >= index) return Promise.resolve();
    return this.#appliedWaiters.at(index);
  }

  /** Like `appliedAt`, but resolves after `mostMs` at the latest. Default: the request timeout. */
  appliedWithin(index: number, mostMs = this.requestTimeoutMs): Promise<void> {
    if (this.replica.applied >= index) return Promise.resolve();
    return this.#appliedWaiters.within(index, mostMs);
  }

  /**
   * Evaluates a transaction and makes its writes durable. Throws MvccError; CodedError 'no-space', 'too-many-requests',
   * 'closed', 'not-leader' (no data was written, and the leader can serve it), 'leader-failed' (the outcome is
   * unknown).
   */
  async txn(request: TxnRequest, options: WriteOptions): Promise<Decision> {
    const readOnly = this.machine.isReadOnly(request);
    if (readOnly && !this.current) await this.linearizable();
    let pinned: Map<Version, Buffer> | undefined;
    for (let tries = 1; ; tries += 1) {
      try {
        if (readOnly) return this.machine.read(request, pinned);
        return await this.#proposer.write(request, options, pinned);
      } catch (error) {
        if (!(error instanceof ValuesNeeded)) throw error;
        pinned = await this.#reads.pin(error, pinned, tries);
      }
    }
  }

  grantLease(id: bigint, ttlSeconds: number): Promise<{ readonly id: bigint; readonly ttlSeconds: number }> {
    return this.#leases.grant(id, ttlSeconds);
  }

  revokeLease(id: bigint): Promise<void> {
    return this.#leases.revoke(id);
  }

  /** Throws CodedError 'not-leader' on a member that must not expire leases. */
  requireLeader(): void {
    if (!this.#ready || this.#stopped) throw notLeader();
  }

  /** Discards history before `revision`. With `physical`, resolves when the rows are removed. Throws MvccError. */
  async compact(revision: number, { physical }: { readonly physical: boolean }): Promise<void> {
    this.#proposer.admit({ grows: false });
    this.machine.checkCompact(revision);
    await this.#proposer.add(Pending.command({ type: 'compact', revision }));
    if (physical) await this.#compactor.settled();
  }

  /** Replicates a command and resolves when it was applied here. Throws like `txn`. */
  async command(command: Command): Promise<void> {
    this.#proposer.admit({ grows: false });
    const added = this.#proposer.add(Pending.command(command));
    if (command.type === 'auth' && this.#authState.changesPermissions(command.command))
      this.#permissionChanges.add(added);
    await added;
  }

  /** Settles when all changes of permissions in progress have been applied here. Undefined when there are none. */
  get permissionsSettled(): Promise<void> | undefined {
    return this.#permissionChanges.settled;
  }

  /**
   * Proposes a configuration change and resolves when it was applied here. Throws RaftError; CodedError
   * 'too-many-requests', 'not-leader', 'leader-failed'.
   */
  async changeConf(change: ConfChange): Promise<void> {
    this.requireLeader();
    // Configuration changes come after everything that was evaluated before them.
    this.#proposer.propose();
    // Revisions that are already visible but come after the change in the log could be lost with leadership once other
    // members vote.
    if (this.#proposer.collected > 0) throw tooMany();
    const { index } = this.replica.proposeConfChange(change);
    this.#confIndex = index;
    const { term } = this.replica;
    await this.appliedAt(index);
    // The outcome is unknown if leadership was lost or this member is stopping.
    if (this.replica.term !== term || this.replica.applied < index) throw leaderFailed();
  }

  /**
   * Resolves with the newest revision, or `wanted`, once it is on disk and compaction has settled. Throws MvccError.
   */
  async settledRevision(wanted: number): Promise<number> {
    const { machine } = this;
    if (wanted > machine.visible) throw new MvccError('future-revision');
    if (wanted > 0 && wanted < machine.compacted) throw new MvccError('compacted');
    await this.#compactor.settled();
    // Flushes relaxed writes that are already visible.
    this.#proposer.propose();
    await this.#proposer.lastProposed();
    return wanted > 0 ? wanted : machine.visible;
  }

  /** Head of a snapshot for another member. Its rows stay unchanged from `ready` until `release`. */
  pinSnapshot(): { readonly head: SnapshotHead; readonly ready: Promise<void>; release(): void } {
    const { replica } = this;
    const { release, ready } = this.#compactor.pause();
    const head: SnapshotHead = {
      position: { index: replica.applied, term: replica.raft.termAt(replica.applied) ?? 0 },
      revision: this.#applier.revision,
      compacted: this.machine.compacted,
      clusterId: this.identity.clusterId,
      leases: this.#leases.records(),
      documents: new Map([
        [Document.cluster, this.cluster.encode()],
        [Document.auth, this.#authState.export()],
      ]),
    };
    return { head, ready, release };
  }

  // The replica calls the following methods.

  apply(entries: readonly Entry[], conf: ConfState | undefined): void {
    this.#applier.apply(entries, conf);
    const last = entries.at(-1);
    if (last === undefined) return;
    if (this.#leadsFrom > 0 && !this.#ready && last.index >= this.#leadsFrom) this.#caughtUp();
    this.#appliedWaiters.applied(last.index);
  }

  leadershipChanged(leads: boolean): void {
    if (leads && this.#leadsFrom === 0) this.#leadsFrom = this.replica.raft.lastIndex;
    else if (!leads && this.#leadsFrom > 0) {
      this.#leadsFrom = 0;
      this.#confIndex = 0;
      this.#ready = false;
      this.#proposer.lose();
    }
    this.#deps.events.leadership.emit();
    this.leadership.wake();
  }

  /** Called when this leader has applied all entries from before its leadership. */
  #caughtUp(): void {
    if (!this.replica.alone || this.#proposer.reserved <= this.machine.head) this.#becomeReady();
    else this.#leadsFrom = this.#proposer.skipReserved();
  }

  #becomeReady(): void {
    this.#ready = true;
    this.#leases.extend(this.replica.alone ? 0 : this.replica.electionMs);
    this.#deps.events.leadership.emit();
    this.leadership.wake();
  }

  stateToWrite(): WrittenState | undefined {
    const { applied } = this.replica;
    const base = this.#compactor.nextBase(applied);
    const discards = this.#compactor.takeDiscards();
    const far = applied - this.#applied.stored >= APPLIED_ENTRIES || this.#applier.bytes >= APPLIED_BYTES;
    const withApplied = far || this.#applied.dirty || base !== undefined || this.#stopped;
    const reserved = this.#proposer.nextReserve();
    if (!withApplied && discards.length === 0 && reserved === undefined) return undefined;
    if (withApplied) this.#applier.bytes = 0;
    return {
      discards,
      ...(withApplied ? { applied: this.#applied.take(applied) } : {}),
      ...(base === undefined ? {} : { base }),
      ...(reserved === undefined ? {} : { reserved }),
    };
  }

  stateWritten(state: WrittenState): void {
    if (state.applied !== undefined) this.#applied.written(state.applied);
    if (state.reserved !== undefined) this.#proposer.reserve(state.reserved);
    this.#compactor.written(state);
  }

  diskFull(full: boolean): void {
    this.#space.setFull(full);
  }

  streamSnapshot(to: NodeId, index: number): void {
    this.#transfer.stream(to, index);
  }

  async install(snapshot: SnapshotMeta, hardState: StoredHardState): Promise<void> {
    const { id, head } = this.#transfer.take(snapshot.index);
    const state = await this.#deps.storage.install(id, head, hardState);
    const machine = this.#newMachine();
    await this.#loadInto(machine, state);
    const reached = this.machine.visible;
    this.machine.become(machine);
    this.#reset(state);
    this.#deps.events.members.emit();
    this.#deps.events.replaced.emit(reached);
    this.#appliedWaiters.applied(snapshot.index);
    this.#deps.log.info('installed snapshot', { index: snapshot.index, revision: machine.visible });
  }
}
