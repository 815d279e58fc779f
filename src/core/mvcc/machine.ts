/**
 * The multi-version store as a state machine: which key had which version at which revision. It is ahead of the disk: `head` is
 * the last revision that has been decided, `visible` the last that readers and watchers may see. The shell makes revisions
 * durable and then publishes them, or rolls them back when the disk is full; unpublished revisions are never visible.
 *
 * Values may have been dropped from memory. An operation that needs one throws `ValuesNeeded` before it changes anything; the
 * shell reads them and asks again with them in hand.
 */

import { EventType, encodeDeleteEvent, encodedValue, encodePutEvent, type StoredEvent } from '../../api/etcd/event.ts';
import {
  type Compare,
  type DeleteRangeRequest,
  type PutRequest,
  type RangeRequest,
  type RequestOp,
  SortOrder,
  SortTarget,
  type TxnRequest,
} from '../../api/etcd/kv.ts';
import { assert } from '../../base/errors.ts';
import { holds } from './compare.ts';
import { MvccError } from './errors.ts';
import { type Collected, Garbage } from './garbage.ts';
import { Leases } from './leases.ts';
import { OrderedMap } from './ordered-map.ts';
import { intervalOf } from './txn-check.ts';
import { ValueCache, type ValueCacheLimits } from './value-cache.ts';
import { isDelete, type KeyHistory, liveAt, PoolId, type Version } from './version.ts';

/** Values that are not in memory. Read their rows and repeat the operation with them. */
export class ValuesNeeded extends Error {
  readonly versions: readonly Version[];
  /** How many values are asked for together, those in memory included. */
  readonly among: number;
  constructor(versions: readonly Version[], among: number) {
    super('values needed');
    this.versions = versions;
    this.among = among;
  }
}

/** Values read back from the log, for one operation. */
export type Pinned = ReadonlyMap<Version, Buffer>;

export interface Change {
  readonly version: Version;
  /** The state before the revision, if the key existed then. */
  readonly previous: Version | undefined;
  /** The encoded event; undefined once it has been dropped from memory. */
  readonly field: Buffer;
}

export interface DecidedRevision {
  readonly revision: number;
  readonly changes: readonly Change[];
}

export interface RangeAnswer {
  readonly kind: 'range';
  readonly versions: readonly Version[];
  /** Encoded key-values, as `EncodedEvent` has them, in the order of `versions`; empty when only keys or the count were asked for. */
  readonly kvs: readonly Buffer[];
  readonly keysOnly: boolean;
  readonly more: boolean;
  readonly count: number;
}

export type Answer =
  | RangeAnswer
  | { readonly kind: 'put'; readonly previous: Buffer | undefined }
  | { readonly kind: 'delete'; readonly deleted: number; readonly previous: readonly Buffer[] }
  | TxnAnswer;

export interface TxnAnswer {
  readonly kind: 'txn';
  readonly succeeded: boolean;
  readonly answers: readonly Answer[];
}

/** What deciding a transaction gave: its answer and, when it wrote, the new revision. */
export interface Decision {
  readonly answer: TxnAnswer;
  readonly decided: DecidedRevision | undefined;
  /** Revision for the answer's header. */
  readonly revision: number;
}

/** Revisions from behind `after` to below `upTo` may have been shown, and have been lost with a power cut. */
interface Lost {
  readonly after: number;
  readonly upTo: number;
}

const NO_PINS: Pinned = new Map();

export class Machine {
  readonly leases = new Leases();
  #keys = new OrderedMap<KeyHistory, Standing>(standing);
  #cache: ValueCache;
  #garbage = new Garbage();
  /** Decided and not yet published, oldest first. */
  #pending: DecidedRevision[] = [];
  #head = 1;
  #visible = 1;
  #liveKeys = 0;
  #compacted = 0;
  #writing: Change[] = [];
  #lost: Lost[] = [];

  constructor(limits: ValueCacheLimits) {
    this.#cache = new ValueCache(limits);
  }

  get head(): number {
    return this.#head;
  }

  get visible(): number {
    return this.#visible;
  }

  get compacted(): number {
    return this.#compacted;
  }

  /** Keys that exist after all that was decided. */
  get keyCount(): number {
    return this.#liveKeys;
  }

  get cachedBytes(): number {
    return this.#cache.bytes;
  }

  /** Takes over one stored revision; call in order, then `loaded`. */
  load(revision: number, events: readonly StoredEvent[]): void {
    this.#cache.stored = revision;
    events.forEach((event, sub) => {
      const version: Version = {
        key: event.key,
        revision,
        sub,
        createRevision: event.createRevision,
        version: event.type === EventType.delete ? 0 : event.version,
        lease: event.lease,
        kv: Buffer.from(event.kv),
        size: event.kv.length,
        pool: PoolId.none,
      };
      this.#append(version);
    });
    this.#garbage.row(revision, events.length);
    if (events.length === 0) this.#noteLost(revision);
    this.#head = Math.max(this.#head, revision);
    this.#visible = this.#head;
  }

  /** Ends loading. */
  loaded(compacted: number): void {
    this.#compacted = compacted;
    this.#head = Math.max(this.#head, compacted);
    this.#visible = this.#head;
    this.#cache.stored = this.#head;
  }

  /** Gives every lease the keys that carry it: once, after the leases have been re-created. */
  attachLeases(): void {
    if (this.leases.size === 0) return;
    this.#keys.walk('', undefined, ({ key, versions }) => {
      const lease = versions.at(-1)?.lease ?? 0n;
      if (lease !== 0n) this.leases.get(lease)?.keys.add(key);
    });
  }

  /** Reads what is visible. Throws MvccError 'compacted', 'future-revision', or ValuesNeeded. */
  range(request: RangeRequest, pinned: Pinned = NO_PINS): RangeAnswer {
    this.#checkRevision(request.revision, this.#visible);
    return this.#range(request, request.revision > 0 ? request.revision : this.#visible, pinned);
  }

  /** True when the transaction cannot write, whichever branch is taken. */
  isReadOnly(request: TxnRequest): boolean {
    const reads = (operation: RequestOp): boolean =>
      operation.kind === 'range' || (operation.kind === 'txn' && this.isReadOnly(operation.txn));
    return request.success.every(reads) && request.failure.every(reads);
  }

  /** A transaction that only reads, at what is visible. */
  read(request: TxnRequest, pinned: Pinned = NO_PINS): Decision {
    const path = this.#path(request, this.#visible, pinned);
    this.#prepare(path, this.#visible, pinned);
    return { answer: this.#apply(path, this.#visible, pinned), decided: undefined, revision: this.#visible };
  }

  /** Decides a transaction on top of all that was decided before. Throws MvccError or ValuesNeeded, with nothing changed. */
  decide(request: TxnRequest, pinned: Pinned = NO_PINS): Decision {
    const path = this.#path(request, this.#head, pinned);
    this.#prepare(path, this.#head, pinned);
    const changes: Change[] = [];
    this.#writing = changes;
    let answer: TxnAnswer;
    try {
      answer = this.#apply(path, this.#head + 1, pinned);
    } catch (error) {
      // A range behind a delete may look at keys that the preparation did not: as if nothing had happened, then.
      this.#takeBack(changes, this.#head + 1);
      throw error;
    } finally {
      this.#writing = [];
    }
    return { answer, decided: this.#seal(changes), revision: this.#head };
  }

  /** The keys of a lease go, in one revision, and the lease with them. */
  revoke(id: bigint): DecidedRevision | undefined {
    const lease = this.leases.get(id);
    if (lease === undefined) throw new MvccError('lease-not-found');
    const changes: Change[] = [];
    this.#writing = changes;
    for (const key of [...lease.keys].sort()) this.#remove(key, '', this.#head + 1);
    this.#writing = [];
    this.leases.remove(id);
    return this.#seal(changes);
  }

  /** Gives `revision` out for nothing: neither it nor any below it that is not used is ever given out again. */
  skipTo(revision: number): DecidedRevision {
    this.#noteLost(revision);
    this.#head = revision;
    const decided: DecidedRevision = { revision, changes: [] };
    this.#pending.push(decided);
    return decided;
  }

  /** `revision` is empty and comes next. */
  #noteLost(revision: number): void {
    if (this.#lost.at(-1)?.upTo !== revision) this.#lost.push({ after: this.#head, upTo: revision });
  }

  /**
   * Who wants to hear of `revision` and what follows has seen the one before it. Where that has been lost since, what has been seen is not true any
   * more: then the revision from which on it is; else undefined.
   */
  lostBefore(revision: number): number | undefined {
    return this.#lost.find(({ after, upTo }) => Math.max(after, this.#compacted) + 1 < revision && revision < upTo)
      ?.upTo;
  }

  /** Makes everything up to `revision` visible and returns it, oldest first. */
  publish(revision: number): DecidedRevision[] {
    let count = 0;
    while (count < this.#pending.length && (this.#pending[count] as DecidedRevision).revision <= revision) count += 1;
    this.#visible = Math.max(this.#visible, Math.min(revision, this.#head));
    return this.#pending.splice(0, count);
  }

  /** A value that has been read back from the log is kept if it is still current. */
  refill(version: Version, kv: Buffer): void {
    if (version.kv !== undefined || this.#keys.get(version.key)?.versions.at(-1) !== version) return;
    version.kv = Buffer.from(kv);
    this.#cache.addCurrent(version);
  }

  /** Everything up to `revision` can be read back from the log. */
  stored(revision: number): void {
    this.#cache.stored = Math.max(this.#cache.stored, revision);
  }

  /** Takes back every revision after `to`; none of them may be visible. */
  rollBack(to = this.#visible): void {
    for (let last = this.#pending.at(-1); last !== undefined && last.revision > to; last = this.#pending.at(-1)) {
      this.#takeBack(last.changes, last.revision);
      this.#pending.pop();
    }
    this.#head = Math.max(to, this.#visible);
  }

  /** Takes over a revision that another member has decided. It is visible at once; nothing of this member's own may be pending. */
  accept(revision: number, events: readonly StoredEvent[]): DecidedRevision {
    assert(revision > this.#head, 'a revision is taken over once, behind all others');
    const changes: Change[] = events.map((event, sub) => {
      const previous = liveAt(this.#keys.get(event.key), this.#head);
      const isPut = event.type !== EventType.delete;
      const version: Version = {
        key: event.key,
        revision,
        sub,
        createRevision: event.createRevision,
        version: isPut ? event.version : 0,
        lease: event.lease,
        kv: event.kv,
        size: event.kv.length,
        pool: PoolId.none,
      };
      this.#append(version);
      return { version, previous, field: event.field };
    });
    this.#garbage.row(revision, events.length);
    if (events.length === 0) this.#noteLost(revision);
    this.#head = revision;
    this.#visible = revision;
    return { revision, changes };
  }

  /** Becomes what `other` is, which is of no use afterwards. */
  become(other: Machine): void {
    this.leases.become(other.leases);
    this.#keys = other.#keys;
    this.#liveKeys = other.#liveKeys;
    this.#cache = other.#cache;
    this.#garbage = other.#garbage;
    this.#pending = other.#pending;
    this.#head = other.#head;
    this.#visible = other.#visible;
    this.#compacted = other.#compacted;
    this.#lost = other.#lost;
  }

  /** Discards history before `revision`. Throws MvccError 'compacted' or 'future-revision'. */
  compact(revision: number): void {
    this.checkCompact(revision);
    this.#compacted = revision;
    this.#lost = this.#lost.filter(({ upTo }) => upTo > revision);
  }

  checkCompact(revision: number): void {
    if (revision <= this.#compacted) throw new MvccError('compacted');
    if (revision > this.#visible) throw new MvccError('future-revision');
  }

  /** Takes versions that compaction has made useless out of the index, in steps of about `most`. */
  collect(most: number): Collected {
    return this.#garbage.collect(this.#compacted, most, (history, upTo, some) => this.#trim(history, upTo, some));
  }

  /**
   * Versions in a key range from revision `from` to `to`, in the order in which they were made, whole revisions, about `most`.
   * Each comes with the version before it.
   */
  changes(
    start: string,
    end: string | undefined,
    from: number,
    to: number,
    most: number,
  ): Array<Omit<Change, 'field'>> {
    const found: Array<Omit<Change, 'field'>> = [];
    this.#keys.walk(start, end, ({ versions }) => {
      for (let i = versions.length - 1; i >= 0; i -= 1) {
        const version = versions[i] as Version;
        if (version.revision < from) break;
        if (version.revision > to) continue;
        let at = i - 1;
        while (versions[at]?.revision === version.revision) at -= 1;
        const before = versions[at];
        found.push({ version, previous: before === undefined || isDelete(before) ? undefined : before });
      }
    });
    found.sort((a, b) => a.version.revision - b.version.revision || a.version.sub - b.version.sub);
    if (found.length <= most) return found;
    let cut = most;
    const last = (found[most - 1] as Change).version.revision;
    while (cut < found.length && (found[cut] as Change).version.revision === last) cut += 1;
    return found.slice(0, cut);
  }

  #checkRevision(revision: number, newest: number): void {
    if (revision <= 0) return;
    if (revision > newest) throw new MvccError('future-revision');
    if (revision < this.#compacted) throw new MvccError('compacted');
  }

  #range(request: RangeRequest, at: number, pinned: Pinned): RangeAnswer {
    const filtered =
      request.minModRevision > 0 ||
      request.maxModRevision > 0 ||
      request.minCreateRevision > 0 ||
      request.maxCreateRevision > 0;
    let sortOrder = request.sortOrder;
    if (request.sortTarget !== SortTarget.key && sortOrder === SortOrder.none) sortOrder = SortOrder.ascend;
    const sorted =
      sortOrder === SortOrder.descend || (sortOrder === SortOrder.ascend && request.sortTarget !== SortTarget.key);
    // Without an order asked for, etcd cuts at the limit first and sorts what is left. Source: etcd apply.go, Range.
    const all = filtered || request.sortOrder !== SortOrder.none || request.limit <= 0;
    const keep = all ? Number.POSITIVE_INFINITY : request.limit + 1;
    let versions: Version[] = [];
    let count = 0;
    if (request.end === '') {
      const version = liveAt(this.#keys.get(request.key), at);
      if (version !== undefined) versions.push(version);
      count = versions.length;
    } else {
      const { start, end } = intervalOf(request.key, request.end);
      let rest = start;
      if (!request.countOnly) {
        this.#keys.walk(start, end, (history, key) => {
          const version = liveAt(history, at);
          if (version !== undefined) versions.push(version);
          rest = `${key}\0`;
          return versions.length < keep;
        });
      }
      count = versions.length + (versions.length < keep && !request.countOnly ? 0 : this.#count(rest, end, at));
    }
    if (request.countOnly) versions = [];
    if (filtered) versions = versions.filter((version) => passes(version, request));
    if (sorted) versions = this.#sort(versions, request.sortTarget, sortOrder === SortOrder.descend, pinned);
    const more = request.limit > 0 && versions.length > request.limit;
    if (more) versions.length = request.limit;
    const kvs = request.keysOnly ? [] : this.#values(versions, pinned);
    return { kind: 'range', versions, kvs, keysOnly: request.keysOnly, more, count };
  }

  /** How many keys there are in a range at a revision: those of whom most is asked come in pages, and each page says how many are left. */
  #count(start: string, end: string | undefined, at: number): number {
    let count = 0;
    this.#keys.skim(
      start,
      end,
      ({ live, newest }) => {
        if (newest > at) return false;
        count += live;
        return true;
      },
      (history) => {
        if (liveAt(history, at) !== undefined) count += 1;
      },
    );
    return count;
  }

  #sort(versions: Version[], target: number, descending: boolean, pinned: Pinned): Version[] {
    const sign = descending ? -1 : 1;
    if (target === SortTarget.value) {
      const kvs = this.#values(versions, pinned);
      const pairs = versions.map((version, i) => ({ version, value: encodedValue(kvs[i] as Buffer) }));
      return pairs.sort((a, b) => sign * a.value.compare(b.value)).map((pair) => pair.version);
    }
    if (target === SortTarget.key) return versions.reverse();
    const rank = (version: Version): number =>
      target === SortTarget.version
        ? version.version
        : target === SortTarget.create
          ? version.createRevision
          : version.revision;
    return versions.sort((a, b) => sign * (rank(a) - rank(b)));
  }

  #values(versions: readonly Version[], pinned: Pinned): Buffer[] {
    const kvs: Buffer[] = [];
    let missing: Version[] | undefined;
    for (const version of versions) {
      const kv = version.kv ?? pinned.get(version);
      if (kv === undefined) {
        missing ??= [];
        missing.push(version);
      } else kvs.push(kv);
    }
    if (missing !== undefined) throw new ValuesNeeded(missing, versions.length);
    return kvs;
  }

  /** Which branch every transaction takes, the nested ones too: all compares look at the state before anything is applied. */
  #path(request: TxnRequest, at: number, pinned: Pinned): Path {
    const succeeded = request.compares.every((compare) => this.#compare(compare, at, pinned));
    const operations = succeeded ? request.success : request.failure;
    const nested = new Map<RequestOp, Path>();
    for (const operation of operations) {
      if (operation.kind === 'txn') nested.set(operation, this.#path(operation.txn, at, pinned));
    }
    return { succeeded, operations, nested };
  }

  #compare(compare: Compare, at: number, pinned: Pinned): boolean {
    const value = (version: Version): Buffer => encodedValue(this.#values([version], pinned)[0] as Buffer);
    if (compare.end === '') return holds(compare, liveAt(this.#keys.get(compare.key), at), value);
    const { start, end } = intervalOf(compare.key, compare.end);
    const found: Version[] = [];
    this.#keys.walk(start, end, (history) => {
      const version = liveAt(history, at);
      if (version !== undefined) found.push(version);
    });
    if (found.length === 0) return holds(compare, undefined, value);
    return found.every((version) => holds(compare, version, value));
  }

  /** Everything that can go wrong with the operations of a path, before any of them is applied. */
  #prepare(path: Path, at: number, pinned: Pinned): void {
    // In etcd's order: errors of puts are reported before errors of ranges.
    this.#preparePuts(path, at, pinned);
    this.#prepareRest(path, at, pinned);
  }

  #preparePuts(path: Path, at: number, pinned: Pinned): void {
    for (const operation of path.operations) {
      if (operation.kind === 'put') this.#preparePut(operation.put, at, pinned);
      else if (operation.kind === 'txn') this.#preparePuts(path.nested.get(operation) as Path, at, pinned);
    }
  }

  #prepareRest(path: Path, at: number, pinned: Pinned): void {
    for (const operation of path.operations) {
      if (operation.kind === 'range') {
        this.#checkRevision(operation.range.revision, at);
        this.#range(operation.range, operation.range.revision > 0 ? operation.range.revision : at, pinned);
      } else if (operation.kind === 'delete') this.#prepareDelete(operation.delete, at, pinned);
      else if (operation.kind === 'txn') this.#prepareRest(path.nested.get(operation) as Path, at, pinned);
    }
  }

  #preparePut(put: PutRequest, at: number, pinned: Pinned): void {
    const current = put.prevKv || put.ignoreValue || put.ignoreLease ? liveAt(this.#keys.get(put.key), at) : undefined;
    if ((put.ignoreValue || put.ignoreLease) && current === undefined) throw new MvccError('key-not-found');
    if (put.lease !== 0n && this.leases.get(put.lease) === undefined) throw new MvccError('lease-not-found');
    if (current !== undefined && (put.prevKv || put.ignoreValue)) this.#values([current], pinned);
  }

  #prepareDelete(request: DeleteRangeRequest, at: number, pinned: Pinned): void {
    if (!request.prevKv) return;
    this.#values(this.#live(request.key, request.end, at), pinned);
  }

  #live(key: string, rangeEnd: string, at: number): Version[] {
    const found: Version[] = [];
    if (rangeEnd === '') {
      const version = liveAt(this.#keys.get(key), at);
      if (version !== undefined) found.push(version);
      return found;
    }
    const { start, end } = intervalOf(key, rangeEnd);
    this.#keys.walk(start, end, (history) => {
      const version = liveAt(history, at);
      if (version !== undefined) found.push(version);
    });
    return found;
  }

  #apply(path: Path, revision: number, pinned: Pinned): TxnAnswer {
    const answers: Answer[] = [];
    for (const operation of path.operations) {
      if (operation.kind === 'range') {
        const at = operation.range.revision > 0 ? operation.range.revision : revision;
        answers.push(this.#range(operation.range, at, pinned));
      } else if (operation.kind === 'put') answers.push(this.#put(operation.put, revision, pinned));
      else if (operation.kind === 'delete') {
        const { key, end, prevKv } = operation.delete;
        const removed = this.#remove(key, end, revision);
        const previous = prevKv ? this.#values(removed, pinned) : [];
        answers.push({ kind: 'delete', deleted: removed.length, previous });
      } else answers.push(this.#apply(path.nested.get(operation) as Path, revision, pinned));
    }
    return { kind: 'txn', succeeded: path.succeeded, answers };
  }

  #put(put: PutRequest, revision: number, pinned: Pinned): Answer {
    const current = liveAt(this.#keys.get(put.key), revision);
    const previous =
      current !== undefined && (put.prevKv || put.ignoreValue) ? this.#values([current], pinned)[0] : undefined;
    const value = put.ignoreValue && previous !== undefined ? encodedValue(previous) : put.value;
    const lease = put.ignoreLease && current !== undefined ? current.lease : put.lease;
    const createRevision = current?.createRevision ?? revision;
    const count = (current?.version ?? 0) + 1;
    const encoded = encodePutEvent({
      key: put.key,
      createRevision,
      modRevision: revision,
      version: count,
      value,
      lease,
    });
    const version: Version = {
      key: put.key,
      revision,
      sub: this.#writing.length,
      createRevision,
      version: count,
      lease,
      kv: encoded.kv,
      size: encoded.kv.length,
      pool: PoolId.none,
    };
    this.#append(version);
    this.#writing.push({ version, previous: this.#beforeRevision(current, revision), field: encoded.field });
    return { kind: 'put', previous: put.prevKv ? previous : undefined };
  }

  #remove(key: string, end: string, revision: number): Version[] {
    const live = this.#live(key, end, revision);
    for (const current of live) {
      const encoded = encodeDeleteEvent(current.key, revision);
      const version: Version = {
        key: current.key,
        revision,
        sub: this.#writing.length,
        createRevision: 0,
        version: 0,
        lease: 0n,
        kv: encoded.kv,
        size: encoded.kv.length,
        pool: PoolId.none,
      };
      this.#append(version);
      this.#writing.push({ version, previous: this.#beforeRevision(current, revision), field: encoded.field });
    }
    return live;
  }

  /** What an event's previous value is: that before the revision, though the revision itself may have written the key already. */
  #beforeRevision(current: Version | undefined, revision: number): Version | undefined {
    if (current?.revision !== revision) return current;
    return this.#writing.find((change) => change.version === current)?.previous;
  }

  #append(version: Version): void {
    let history = this.#keys.get(version.key);
    const before = history?.versions.at(-1);
    if (history === undefined) {
      // Most keys have one version; an empty list that is added to takes room for seventeen.
      history = { key: version.key, versions: [version] };
      this.#keys.set(version.key, history);
    } else {
      history.versions.push(version);
      this.#keys.changed(version.key);
    }
    this.#liveKeys += liveness(version) - liveness(before);
    if (before !== undefined) this.#cache.supersede(before);
    this.#cache.addCurrent(version);
    this.leases.move(version.key, before?.lease ?? 0n, version.lease);
    if (before !== undefined || isDelete(version)) this.#garbage.add(version.revision, history);
  }

  #takeBack(changes: readonly Change[], revision: number): void {
    for (let i = changes.length - 1; i >= 0; i -= 1) this.#undo((changes[i] as Change).version);
    this.#garbage.takeBack(revision);
  }

  #undo(version: Version): void {
    const history = this.#keys.get(version.key);
    if (history === undefined) return;
    history.versions.pop();
    this.#cache.forget(version);
    const before = history.versions.at(-1);
    this.#liveKeys += liveness(before) - liveness(version);
    if (before === undefined) this.#keys.delete(version.key);
    else {
      this.#keys.changed(version.key);
      this.#cache.reinstate(before);
    }
    this.leases.move(version.key, version.lease, before?.lease ?? 0n);
  }

  #seal(changes: readonly Change[]): DecidedRevision | undefined {
    if (changes.length === 0) return undefined;
    this.#head += 1;
    const decided: DecidedRevision = { revision: this.#head, changes };
    this.#pending.push(decided);
    this.#garbage.row(this.#head, changes.length);
    return decided;
  }

  /** Drops about `most` of the versions of a key that are unreachable after compaction at `upTo`, the oldest first; returns them. */
  #trim(history: KeyHistory, upTo: number, most: number): Version[] {
    const { versions } = history;
    let keepFrom = lastUpTo(versions, upTo);
    if (keepFrom > most) {
      let cut = most;
      // The row of a revision that writes a key twice loses its events together.
      while (cut < keepFrom && versions[cut]?.revision === versions[cut - 1]?.revision) cut += 1;
      if (cut < keepFrom) return this.#drop(versions, cut);
    }
    const kept = versions[keepFrom];
    // A delete at the compaction revision itself stays: a watch may still start there.
    if (kept !== undefined && isDelete(kept) && kept.revision < upTo) keepFrom += 1;
    const gone = this.#drop(versions, keepFrom);
    const [first] = versions;
    if (first === undefined) this.#keys.delete(history.key);
    // One revision may write a key twice; its row loses the key's events together, when none of them is of use.
    return first === undefined ? gone : gone.filter((version) => version.revision !== first.revision);
  }

  #drop(versions: Version[], count: number): Version[] {
    const gone = versions.splice(0, count);
    for (const version of gone) this.#cache.forget(version);
    return gone;
  }
}

/** Where the last version at or before a revision stands; 0 where there is none. */
function lastUpTo(versions: readonly Version[], revision: number): number {
  let [from, to] = [0, versions.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((versions[middle] as Version).revision <= revision) from = middle + 1;
    else to = middle;
  }
  return Math.max(0, from - 1);
}

/** What the last versions of some keys come to: what is true of their keys at `newest` and at every later revision. */
interface Standing {
  readonly live: number;
  readonly newest: number;
}

function standing(histories: readonly KeyHistory[]): Standing {
  let live = 0;
  let newest = 0;
  for (const { versions } of histories) {
    const last = versions.at(-1);
    live += liveness(last);
    if (last !== undefined && last.revision > newest) newest = last.revision;
  }
  return { live, newest };
}

/** How many keys exist because of the last version of one: one or none. */
function liveness(version: Version | undefined): number {
  return version === undefined || isDelete(version) ? 0 : 1;
}

interface Path {
  readonly succeeded: boolean;
  readonly operations: readonly RequestOp[];
  readonly nested: ReadonlyMap<RequestOp, Path>;
}

function passes(version: Version, request: RangeRequest): boolean {
  return (
    (request.minModRevision <= 0 || version.revision >= request.minModRevision) &&
    (request.maxModRevision <= 0 || version.revision <= request.maxModRevision) &&
    (request.minCreateRevision <= 0 || version.createRevision >= request.minCreateRevision) &&
    (request.maxCreateRevision <= 0 || version.createRevision <= request.maxCreateRevision)
  );
}
