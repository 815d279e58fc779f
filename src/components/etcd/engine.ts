/**
 * Puts the state machine and the log together. Requests are decided in memory as they arrive; everything decided while the disk
 * was busy goes into the next batch, one flush for all; only then is it published and answered. Relaxed writes are published at
 * once and ride with the next batch, or with the flush interval.
 */

import { splitEvents } from '../../api/etcd/event.ts';
import type { RangeRequest, TxnRequest } from '../../api/etcd/kv.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { MvccError } from '../../core/mvcc/errors.ts';
import {
  type DecidedRevision,
  type Decision,
  Machine,
  type Pinned,
  type RangeAnswer,
  ValuesNeeded,
} from '../../core/mvcc/machine.ts';
import type { Version } from '../../core/mvcc/version.ts';
import { Batch } from './batch.ts';
import type { LogState, RevisionLog } from './port.ts';

export interface EngineDeps {
  readonly revisions: RevisionLog;
  readonly clock: Clock;
  readonly log: Log;
  readonly cacheBytes: number;
  readonly flushIntervalMs: number;
  readonly onPublish: (revisions: readonly DecidedRevision[]) => void;
  readonly onFatal: (error: Error) => void;
}

/** etcd's bound on requests that have been accepted and not answered. */
const MAX_WAITING = 5000;
const MAX_WAITING_BYTES = 64 << 20;
/** Revisions that relaxed writes may use before the next batch has to move the mark on disk. */
const RESERVE = 2000;
const COLLECT_STEP = 500;
const PAST_BYTES = 8 << 20;

export class Engine {
  readonly machine: Machine;
  readonly #deps: EngineDeps;
  #state: LogState | undefined;
  #collecting = new Batch();
  #inFlight: Batch | undefined;
  #flushScheduled = false;
  #flushTimer: Timer | undefined;
  #reserved = 0;
  #relaxedInUse = false;
  #full = false;
  #collector: Promise<void> | undefined;
  #stopped = false;
  #idle: (() => void) | undefined;

  constructor(deps: EngineDeps) {
    this.#deps = deps;
    this.machine = new Machine({ currentBytes: deps.cacheBytes, pastBytes: Math.min(PAST_BYTES, deps.cacheBytes) });
  }

  /** True while the disk has no room: the last batch was refused. */
  get full(): boolean {
    return this.#full;
  }

  get state(): LogState {
    if (this.#state === undefined) throw new CodedError('closed', 'the store is not open');
    return this.#state;
  }

  async start(): Promise<void> {
    const { machine } = this;
    const state = await this.#deps.revisions.open(
      (rows) => {
        for (const row of rows) machine.load(row.revision, splitEvents(row.events));
      },
      (error) => this.#deps.onFatal(error),
    );
    this.#state = state;
    this.#reserved = state.reserved;
    machine.loaded(state.compacted, state.reserved);
    const now = this.#deps.clock.monotonicMs();
    for (const lease of state.leases) machine.leases.grant(lease.id, lease.ttlSeconds, now);
    machine.attachLeases();
    if (state.compacted > 0) this.#collect();
  }

  /** Makes everything durable and closes the log. Requests that come later are refused. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#flushTimer?.cancel();
    // A mark above the head is for the case that we do not come to this point.
    if (this.#state !== undefined && this.#reserved > this.machine.head) this.#collecting.reserved = this.machine.head;
    while (this.#inFlight !== undefined || (!this.#collecting.empty && !this.#full)) {
      this.#flush();
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    this.#collecting.fail(new CodedError('closed', 'the store is stopping'));
    await this.#collector;
    await this.#deps.revisions.close();
  }

  /** A linearizable read: everything acknowledged before the call is in it. Throws MvccError. */
  async range(request: RangeRequest): Promise<{ readonly answer: RangeAnswer; readonly revision: number }> {
    let pinned: Map<Version, Buffer> | undefined;
    for (;;) {
      try {
        return { answer: this.machine.range(request, pinned), revision: this.machine.visible };
      } catch (error) {
        if (!(error instanceof ValuesNeeded)) throw error;
        pinned = await this.values(error.versions, pinned);
      }
    }
  }

  /** Decides and, if it wrote, makes durable. Throws MvccError; CodedError 'no-space', 'too-many-requests', 'closed'. */
  async txn(request: TxnRequest, relaxed: boolean): Promise<Decision> {
    const readOnly = this.machine.isReadOnly(request);
    let pinned: Map<Version, Buffer> | undefined;
    for (;;) {
      try {
        if (readOnly) return this.machine.read(request, pinned);
        return await this.#write(request, relaxed, pinned);
      } catch (error) {
        if (!(error instanceof ValuesNeeded)) throw error;
        pinned = await this.values(error.versions, pinned);
      }
    }
  }

  /** Values that have left memory, from the log. Throws MvccError 'compacted' when one has been discarded meanwhile. */
  async values(versions: readonly Version[], known?: Pinned): Promise<Map<Version, Buffer>> {
    const pinned = new Map(known);
    const wanted = new Map<number, Version[]>();
    for (const version of versions) {
      const same = wanted.get(version.revision);
      if (same === undefined) wanted.set(version.revision, [version]);
      else same.push(version);
    }
    const revisions = [...wanted.keys()];
    const rows = await this.#deps.revisions.read(revisions);
    revisions.forEach((revision, i) => {
      const row = rows[i];
      if (row === undefined) throw new MvccError('compacted');
      const events = splitEvents(row);
      for (const version of wanted.get(revision) ?? []) {
        const event = events.find((candidate) => candidate.key === version.key);
        if (event === undefined) throw new MvccError('compacted');
        pinned.set(version, event.kv);
        this.machine.refill(version, event.kv);
      }
    });
    return pinned;
  }

  async grantLease(id: bigint, ttlSeconds: number): Promise<{ readonly id: bigint; readonly ttlSeconds: number }> {
    this.#admit();
    const lease = this.machine.leases.grant(id, ttlSeconds, this.#deps.clock.monotonicMs());
    this.#collecting.granted.push(lease);
    await this.#wait(this.machine.head, true);
    return lease;
  }

  async revokeLease(id: bigint): Promise<void> {
    this.#admit();
    const lease = this.machine.leases.get(id);
    if (lease === undefined) throw new MvccError('lease-not-found');
    const decided = this.machine.revoke(id);
    this.#collecting.revoked.push(lease);
    if (decided !== undefined) this.#collecting.add(decided, false);
    await this.#wait(this.machine.head, true);
  }

  /** Discards history before `revision`; with `physical`, resolves when that is done. Throws MvccError. */
  async compact(revision: number, physical: boolean): Promise<void> {
    this.#admit();
    this.machine.compact(revision);
    this.#collecting.compacted = revision;
    await this.#wait(this.machine.head, true);
    this.#collect();
    if (physical) await this.#collector;
  }

  /** The newest revision, or `wanted` when given, once it is on disk. Throws MvccError for revisions that cannot be read. */
  async settledRevision(wanted: number): Promise<number> {
    const { machine } = this;
    if (wanted > machine.visible) throw new MvccError('future-revision');
    if (wanted > 0 && wanted < machine.compacted) throw new MvccError('compacted');
    if (!this.#collecting.empty) await this.#wait(machine.head, true);
    return wanted > 0 ? wanted : machine.visible;
  }

  async #write(request: TxnRequest, relaxed: boolean, pinned: Pinned | undefined): Promise<Decision> {
    this.#admit();
    const before = this.machine.head;
    const decision = this.machine.decide(request, pinned);
    const { decided } = decision;
    if (decided === undefined) {
      // What it read may not be on disk yet: the answer waits for that.
      if (before > this.machine.visible) await this.#wait(before, false);
      return decision;
    }
    const asRelaxed = relaxed && !this.#full;
    if (asRelaxed) this.#relaxedInUse = true;
    this.#collecting.add(decided, asRelaxed);
    if (asRelaxed && this.machine.visible === before && decided.revision <= this.#reserved) {
      this.#publish(decided.revision);
      this.#armFlush();
      return decision;
    }
    await this.#wait(decided.revision, false);
    return decision;
  }

  #admit(): void {
    if (this.#stopped) throw new CodedError('closed', 'the store is stopping');
    const waiting = this.#collecting.waiters.length + (this.#inFlight?.waiters.length ?? 0);
    if (waiting >= MAX_WAITING || this.#collecting.bytes > MAX_WAITING_BYTES) {
      throw new CodedError('too-many-requests', 'too many requests are waiting for the disk');
    }
  }

  /** Resolves when `revision` is visible, or with `disk` when the batch now being collected is on disk. */
  #wait(revision: number, disk: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      // Without anything of its own in the batch being collected, it is the one under way that decides.
      const batch = !disk && this.#collecting.rows.length === 0 && this.#inFlight ? this.#inFlight : this.#collecting;
      batch.waiters.push({ revision, disk, resolve, reject });
      if (batch === this.#collecting) this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#flushScheduled || this.#inFlight !== undefined) return;
    this.#flushScheduled = true;
    // After this turn's sockets have been read: what arrived together is written together.
    setImmediate(() => {
      this.#flushScheduled = false;
      this.#flush();
    });
  }

  #armFlush(): void {
    if (this.#flushTimer !== undefined || this.#stopped) return;
    this.#flushTimer = this.#deps.clock.setTimer(this.#deps.flushIntervalMs, () => {
      this.#flushTimer = undefined;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#inFlight !== undefined || this.#state === undefined) return;
    const batch = this.#collecting;
    if (batch.empty && batch.waiters.length === 0) {
      this.#settled();
      return;
    }
    this.#collecting = new Batch();
    this.#inFlight = batch;
    const { head } = this.machine;
    if (this.#relaxedInUse && !this.#stopped && this.#reserved - head < RESERVE / 2) batch.reserved = head + RESERVE;
    this.#deps.revisions.commit(batch.toLog()).then(
      () => this.#committed(batch),
      (error: unknown) => this.#refused(batch, error),
    );
  }

  #committed(batch: Batch): void {
    this.#inFlight = undefined;
    if (this.#full) this.#deps.log.info('there is room on the disk again: writes are accepted');
    this.#full = false;
    if (batch.reserved !== undefined) this.#reserved = batch.reserved;
    let upTo = batch.lastRevision;
    this.machine.stored(upTo);
    // Relaxed writes that stand right behind need not wait for another flush.
    for (const row of this.#collecting.rows) {
      if (!row.relaxed || row.decided.revision > this.#reserved) break;
      upTo = row.decided.revision;
    }
    this.#publish(upTo);
    for (const waiter of batch.waiters) waiter.resolve();
    this.#collecting.resolveUpTo(this.machine.visible);
    if (this.#collecting.waiters.length > 0 || this.#stopped) this.#schedule();
    else if (!this.#collecting.empty) this.#armFlush();
    this.#settled();
  }

  #refused(batch: Batch, cause: unknown): void {
    this.#inFlight = undefined;
    const error = cause instanceof Error ? cause : new Error(messageOf(cause));
    if (!(error instanceof CodedError && error.code === 'no-space')) {
      // The log reports what is fatal by itself; nobody may take these writes for done.
      batch.fail(error);
      this.#collecting.fail(error);
      this.#settled();
      return;
    }
    if (!this.#full) this.#deps.log.error('the disk is full: writes are refused until there is room', { cause: error });
    this.#full = true;
    const later = this.#collecting;
    this.#collecting = new Batch();
    // Leases first: keys that come back want to find theirs.
    for (const lease of [...batch.revoked, ...later.revoked]) this.machine.leases.restore(lease);
    this.machine.rollBack();
    for (const lease of [...batch.granted, ...later.granted]) this.machine.leases.remove(lease.id);
    this.#collecting.keep(batch, this.machine.visible);
    this.#collecting.keep(later, this.machine.visible);
    batch.fail(error);
    later.fail(error);
    if (!this.#collecting.empty) this.#armFlush();
    this.#settled();
  }

  #publish(revision: number): void {
    const published = this.machine.publish(revision);
    if (published.length > 0) this.#deps.onPublish(published);
  }

  #settled(): void {
    const idle = this.#idle;
    this.#idle = undefined;
    idle?.();
  }

  /** Discards compacted history in small batches between the others'. */
  #collect(): void {
    this.#collector ??= this.#collectAll()
      .catch((error: unknown) => {
        if (!this.#stopped) this.#deps.log.warn('compaction will go on later', { cause: messageOf(error) });
      })
      .finally(() => {
        this.#collector = undefined;
      });
  }

  async #collectAll(): Promise<void> {
    for (let done = false; !done && !this.#stopped; ) {
      const step = this.machine.collect(COLLECT_STEP);
      done = step.done;
      if (step.discarded.length === 0) continue;
      this.#collecting.discards.push(...step.discarded);
      await this.#wait(this.machine.head, true);
    }
  }
}
