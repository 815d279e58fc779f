/**
 * Write path of the leader: evaluates requests in memory ahead of the log, and proposes the results of one turn
 * together. A failed proposal is rolled back.
 */

import { CodedError } from '../../base/errors.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { TxnRequest } from '../core/messages/kv.ts';
import type { Lease } from '../core/mvcc/leases.ts';
import { type DecidedRevision, type Decision, type Pinned, ValuesNeeded } from '../core/mvcc/machine.ts';
import { RaftError } from '../core/raft/index.ts';
import { ALARM_NO_SPACE } from './maintenance/alarms.ts';
import { type DiskSpace, type WriteOptions, writesMore } from './maintenance/space.ts';
import { Pending } from './pending.ts';
import type { Reads } from './reads.ts';
import { notLeader, tooMany } from './refusals.ts';
import type { StoreView } from './store-view.ts';
import { Undecided } from './undecided.ts';

export interface ProposerDeps {
  readonly view: StoreView;
  readonly reads: Pick<Reads, 'linearizable'>;
  readonly space: DiskSpace;
  readonly clock: Clock;
  readonly flushIntervalMs: number;
  /** Runs a callback after the requests of this event loop turn have been processed. */
  readonly defer: (run: () => void) => void;
  readonly onPublish: (revisions: readonly DecidedRevision[]) => void;
  /** Called with the time in milliseconds in which a write request was evaluated or rejected. */
  readonly onDecided: (request: TxnRequest, success: boolean, ms: number) => void;
  /** Called when proposals failed: dropped, or lost with leadership. */
  readonly onProposalsFailed: (count: number) => void;
}

/** etcd's limit of accepted requests without a response. */
const MAX_WAITING = 5000;
const MAX_WAITING_BYTES = 64 << 20;
/** Error codes of proposals that were not written. */
const UNWRITTEN: ReadonlySet<string> = new Set(['not-leader', 'too-many-requests']);
/** Number of revisions reserved on disk in advance for relaxed writes. */
const RESERVE = 2000;
/**
 * Flush interval for heartbeats. With a shorter interval, heartbeats would cause most of the flash writes of an idle
 * host.
 */
const HEARTBEAT_FLUSH_MS = 300_000;
/** Maximum number and size of unflushed writes, which are held in memory and flushed as one write. */
const UNFLUSHED = 256;
const UNFLUSHED_BYTES = 256 << 10;
/** Number of election timeouts within which the next leader decides about the proposals of the former leader. */
const UNDECIDED_ELECTIONS = 2;

export class Proposer {
  /** Proposals that were lost with leadership and may still be committed. */
  readonly undecided: Undecided;
  readonly #deps: ProposerDeps;
  #collecting: Pending[] = [];
  #collectingBytes = 0;
  /** Proposals that were passed to raft and are not applied yet, in log order. */
  #proposed: Pending[] = [];
  #scheduled = false;
  #flushTimer: Timer | undefined;
  #flushAtMs = Number.POSITIVE_INFINITY;
  /** Highest reserved revision. Revisions above it become visible only when they are on disk. */
  #reserved = 0;
  #relaxedInUse = false;

  constructor(deps: ProposerDeps) {
    this.#deps = deps;
    this.undecided = new Undecided(deps.clock);
  }

  get reserved(): number {
    return this.#reserved;
  }

  /** Number of requests that are evaluated and not proposed yet. */
  get collected(): number {
    return this.#collecting.length;
  }

  get pending(): number {
    return this.#proposed.length + this.#collecting.length;
  }

  /** Leases whose revocation is not committed. */
  *revoked(): Generator<Lease> {
    for (const { lease } of [...this.#proposed, ...this.#collecting]) if (lease !== undefined) yield lease;
  }

  /** Resolves when the newest proposal was applied. Rejects when the proposal failed. */
  async lastProposed(): Promise<void> {
    await this.#proposed.at(-1)?.wait();
  }

  /** Like `lastProposed`, but also resolves when the proposal failed. */
  async lastSettled(): Promise<void> {
    await Promise.allSettled(this.#proposed.slice(-1).map((last) => last.wait()));
  }

  stop(): void {
    this.#flushTimer?.cancel();
  }

  /**
   * Evaluates a transaction and makes it durable. Throws ValuesNeeded, and the errors of the engine's `txn`. No data
   * was written in these cases, except for 'leader-failed'.
   */
  async write(request: TxnRequest, options: WriteOptions, pinned: Pinned | undefined): Promise<Decision> {
    const { view, space, reads } = this.#deps;
    const { machine } = view;
    const grows = writesMore(request);
    if (grows && space.full) await space.recover();
    this.admit({ grows: grows && !space.admits(request, options) });
    const before = machine.head;
    const { leadsFrom } = view;
    const decision = this.#decide(request, pinned);
    const { decided } = decision;
    if (decided === undefined) {
      // The result may depend on uncommitted revisions. Wait for them, then confirm that this member still leads.
      if (before > machine.visible) await (this.#collecting.at(-1) ?? this.#proposed.at(-1))?.wait();
      if (!view.current) await reads.linearizable();
      // ReadIndex may have been served by a new leader whose writes are missing in this result. No data was written.
      if (view.leadsFrom !== leadsFrom) throw notLeader();
      return decision;
    }
    // Requests that fail, are evaluated again or change no key do not use up the reserve.
    const fromReserve = grows ? space.takeReserve(request) : 0;
    const asRelaxed = options.relaxed && !space.full && view.solitary;
    if (asRelaxed) this.#relaxedInUse = true;
    const pending = Pending.revision(decided, { relaxed: asRelaxed });
    if (asRelaxed && machine.visible === before && decided.revision <= this.#reserved) {
      this.#collect(pending);
      this.show(decided.revision);
      this.#armFlush({ seldom: options.heartbeat === true });
      return decision;
    }
    try {
      await this.add(pending);
    } catch (error) {
      if (error instanceof CodedError && UNWRITTEN.has(error.code)) space.giveBack(fromReserve);
      throw error;
    }
    return decision;
  }

  #decide(request: TxnRequest, pinned: Pinned | undefined): Decision {
    const { view, clock, onDecided } = this.#deps;
    const began = clock.monotonicMs();
    try {
      const decision = view.machine.decide(request, pinned);
      onDecided(request, true, clock.monotonicMs() - began);
      return decision;
    } catch (error) {
      // An evaluation that requires values from disk is counted when it is repeated.
      if (!(error instanceof ValuesNeeded)) onDecided(request, false, clock.monotonicMs() - began);
      throw error;
    }
  }

  /** Throws CodedError 'closed', 'not-leader', 'no-space', 'too-many-requests' when no write is accepted now. */
  admit({ grows }: { readonly grows: boolean }): void {
    const { view, space } = this.#deps;
    if (view.stopped) throw new CodedError('closed', 'the store is stopping');
    if (!view.leads) throw notLeader();
    if (grows && (space.full || view.cluster.alarms.some(({ alarm }) => alarm === ALARM_NO_SPACE)))
      throw new CodedError('no-space', 'no space left on the device');
    if (this.pending >= MAX_WAITING || this.#collectingBytes > MAX_WAITING_BYTES) {
      throw new CodedError('too-many-requests', 'too many requests are waiting for the disk');
    }
  }

  /**
   * Proposes `pending` together with the other requests of this event loop turn. Resolves when `pending` is committed
   * and applied.
   */
  add(pending: Pending): Promise<void> {
    this.#collect(pending);
    this.#schedule();
    return pending.wait();
  }

  #collect(pending: Pending): void {
    this.#collecting.push(pending);
    this.#collectingBytes += pending.bytes;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // Runs after the sockets of this turn were read, so that requests that arrived together are proposed together.
    this.#deps.defer(() => {
      this.#scheduled = false;
      this.propose();
    });
  }

  #armFlush({ seldom }: { readonly seldom: boolean }): void {
    const { view, clock, flushIntervalMs } = this.#deps;
    if (view.stopped) return;
    const few = this.#collecting.length < UNFLUSHED && this.#collectingBytes < UNFLUSHED_BYTES;
    const atMs =
      clock.monotonicMs() + (seldom && few ? Math.max(HEARTBEAT_FLUSH_MS, flushIntervalMs) : flushIntervalMs);
    if (atMs >= this.#flushAtMs) return;
    this.#flushTimer?.cancel();
    this.#flushAtMs = atMs;
    this.#flushTimer = clock.setTimer(atMs - clock.monotonicMs(), () => {
      this.#disarm();
      this.propose();
    });
  }

  #disarm(): void {
    this.#flushTimer?.cancel();
    this.#flushTimer = undefined;
    this.#flushAtMs = Number.POSITIVE_INFINITY;
  }

  /** Proposes everything that was evaluated. */
  propose(): void {
    const { view } = this.#deps;
    const batch = this.#collecting;
    if (batch.length === 0 || view.stopped) return;
    this.#disarm();
    this.#collecting = [];
    this.#collectingBytes = 0;
    const { replica, machine } = view;
    try {
      // The position is read before the proposal, because a single member on a fast disk may apply the proposal before
      // the call returns.
      const { lastIndex, term } = replica.raft;
      for (const [i, pending] of batch.entries()) {
        pending.index = lastIndex + 1 + i;
        pending.term = term;
      }
      this.#proposed.push(...batch);
      replica.propose(batch.map((pending) => pending.encode()));
    } catch (error) {
      if (!(error instanceof RaftError)) throw error;
      this.#proposed.length -= batch.length;
      // Visible revisions are never rolled back. They are proposed again later.
      const { visible } = machine;
      const shown = batch.findIndex(({ relaxed, decided }) => !relaxed || (decided?.revision ?? 0) > visible);
      const kept = batch.slice(0, shown < 0 ? batch.length : shown);
      for (const pending of kept) this.#collect(pending);
      if (kept.length > 0) this.#armFlush({ seldom: false });
      this.#rejectBatch(batch.slice(kept.length), error.code === 'Overloaded' ? tooMany() : notLeader());
    }
  }

  /** Rolls back and rejects `batch`, the newest part of the evaluated requests. */
  #rejectBatch(batch: readonly Pending[], error: Error): void {
    this.#rollBack(batch);
    for (const pending of batch) pending.reject(error);
  }

  #rollBack(batch: readonly Pending[]): void {
    const { view, onProposalsFailed } = this.#deps;
    const { machine } = view;
    if (!view.stopped && batch.length > 0) onProposalsFailed(batch.length);
    const first = batch.find((pending) => pending.decided !== undefined)?.decided;
    for (const { lease } of batch) if (lease !== undefined) machine.leases.restore(lease);
    if (first !== undefined) machine.rollBack(Math.max(first.revision - 1, machine.visible));
  }

  /**
   * Handles lost leadership: the next leader may or may not commit the proposals. Requests not proposed yet are
   * rejected.
   */
  lose(): void {
    const { view } = this.#deps;
    const { lost, never } = this.#takeAll();
    this.#rollBack([...lost, ...never]);
    this.undecided.add(lost, UNDECIDED_ELECTIONS * view.replica.electionMs);
    for (const pending of never) pending.reject(notLeader());
  }

  /** Rejects all requests because this member is stopping. */
  end(error: Error): void {
    const { lost, never } = this.#takeAll();
    this.#rejectBatch([...lost, ...never], error);
    this.undecided.rejectAll(error);
  }

  #takeAll(): { readonly lost: readonly Pending[]; readonly never: readonly Pending[] } {
    const lost = this.#proposed;
    const never = this.#collecting;
    this.#proposed = [];
    this.#collecting = [];
    this.#collectingBytes = 0;
    return { lost, never };
  }

  /** Removes and returns the oldest proposal if it is the entry at `index` of `term`. */
  committed(index: number, term: number): Pending | undefined {
    const own = this.#proposed[0];
    if (own === undefined || own.index !== index || own.term !== term) return undefined;
    this.#proposed.shift();
    return own;
  }

  /** Makes revisions up to `revision` visible. */
  show(revision: number): void {
    const { view, onPublish } = this.#deps;
    const published = view.machine.publish(revision);
    if (published.length > 0) onPublish(published);
  }

  /** Sets the reservation of a stored state. */
  loaded(reserved: number): void {
    this.#reserved = reserved;
  }

  /** Makes relaxed writes up to the reserved revision visible. Call it when the reservation is on disk. */
  reserve(reserved: number): void {
    this.#reserved = reserved;
    this.#publishRelaxed();
  }

  /** Reservation to write next. Undefined when it does not change. */
  nextReserve(): number | undefined {
    const { stopped, leads, machine } = this.#deps.view;
    const { head } = machine;
    // A member that has not led since its start still needs the previous reservation.
    if (stopped) return leads && this.#reserved > head ? head : undefined;
    return this.#relaxedInUse && this.#reserved - head < RESERVE / 2 ? head + RESERVE : undefined;
  }

  /**
   * Skips the revisions up to the reservation in the log, because relaxed writes may have been visible and lost in a
   * crash. No further revisions are reserved before the next relaxed write; otherwise each new reservation would have
   * to be skipped again. The first revision after the reservation is never used: a watch that resumes from this
   * revision has received lost revisions and is cancelled. Returns the index of the entry.
   */
  skipReserved(): number {
    this.#relaxedInUse = false;
    const skipped = Pending.revision(this.#deps.view.machine.skipTo(this.#reserved + 2), { relaxed: false });
    this.#collect(skipped);
    this.propose();
    return skipped.index;
  }

  /** Makes relaxed writes that directly follow the visible revision visible without waiting for a flush. */
  #publishRelaxed(): void {
    if (!this.#deps.view.solitary || this.#proposed.length > 0) return;
    let upTo = 0;
    for (const { decided, relaxed } of this.#collecting) {
      if (!relaxed || decided === undefined || decided.revision > this.#reserved) break;
      upTo = decided.revision;
    }
    if (upTo > 0) this.show(upTo);
  }
}
