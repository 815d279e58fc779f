/**
 * Multi-version store as a state machine: the versions of every key by revision. The state is ahead of the disk: `head`
 * is the last decided revision, `visible` the last revision that readers and watchers can see. The caller makes
 * revisions durable and then publishes them, or rolls them back if the disk is full. Unpublished revisions are never
 * visible.
 *
 * Values may have been dropped from memory. An operation that needs a dropped value throws `ValuesNeeded` before it
 * changes any state; the caller reads the values and repeats the operation with them.
 */

import { assert } from '../../../base/errors.ts';
import { EventType, encodeDeleteEvent, encodedValue, encodePutEvent, type StoredEvent } from '../messages/event.ts';
import type { Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest } from '../messages/kv.ts';
import { isComparisonTrue } from './compare.ts';
import {
  type Answer,
  type Change,
  type DecidedRevision,
  type Decision,
  NO_PINS,
  type Pinned,
  type RangeAnswer,
  type TxnAnswer,
} from './decision.ts';
import { MvccError } from './errors.ts';
import type { CollectedGarbage } from './garbage.ts';
import { KeyIndex } from './key-index.ts';
import { Leases } from './leases.ts';
import { readRange, valuesOf } from './range.ts';
import { intervalOf } from './txn-check.ts';
import type { ValueCacheLimits } from './value-cache.ts';
import { liveAt, PoolId, type Version } from './version.ts';

export type { Answer, Change, DecidedRevision, Decision, Pinned, RangeAnswer, TxnAnswer } from './decision.ts';
export { ValuesNeeded } from './decision.ts';

/** Revisions after `after` and below `upTo` that may have been visible and were lost in a power failure. */
interface Lost {
  readonly after: number;
  readonly upTo: number;
}

export class Machine {
  readonly leases = new Leases();
  readonly #index: KeyIndex;
  /** Decided but unpublished revisions, oldest first. */
  #pending: DecidedRevision[] = [];
  #head = 1;
  #visible = 1;
  #compacted = 0;
  #writing: Change[] = [];
  #lost: Lost[] = [];

  constructor(limits: ValueCacheLimits) {
    this.#index = new KeyIndex(limits, this.leases);
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

  /** Number of existing keys after all decided revisions. */
  get keyCount(): number {
    return this.#index.keyCount;
  }

  get cachedBytes(): number {
    return this.#index.cachedBytes;
  }

  /** Loads one stored revision. Call it in order of revisions, then call `loaded`. */
  load(revision: number, events: readonly StoredEvent[]): void {
    this.#index.stored = revision;
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
      this.#index.append(version);
    });
    this.#index.row(revision, events.length);
    if (events.length === 0) this.#noteLost(revision);
    this.#head = Math.max(this.#head, revision);
    this.#visible = this.#head;
  }

  loaded(compacted: number): void {
    this.#compacted = compacted;
    this.#head = Math.max(this.#head, compacted);
    this.#visible = this.#head;
    this.#index.stored = this.#head;
  }

  /** Attaches keys to their leases. Called once, after the leases have been recreated. */
  attachLeases(): void {
    this.#index.attachLeases();
  }

  /** Reads the visible state. Throws MvccError 'compacted', 'future-revision', or ValuesNeeded. */
  range(request: RangeRequest, pinned: Pinned = NO_PINS): RangeAnswer {
    this.#checkRevision(request.revision, this.#visible);
    return readRange(this.#index, request, request.revision > 0 ? request.revision : this.#visible, pinned);
  }

  /** Whether neither branch of the transaction can write. */
  isReadOnly(request: TxnRequest): boolean {
    const reads = (operation: RequestOp): boolean =>
      operation.kind === 'range' || (operation.kind === 'txn' && this.isReadOnly(operation.txn));
    return request.success.every(reads) && request.failure.every(reads);
  }

  /** Executes a read-only transaction on the visible state. */
  read(request: TxnRequest, pinned: Pinned = NO_PINS): Decision {
    const path = this.#path(request, this.#visible, pinned);
    this.#prepare(path, this.#visible, pinned);
    return { answer: this.#apply(path, this.#visible, pinned), decided: undefined, revision: this.#visible };
  }

  /** Decides a transaction on top of all earlier decisions. Throws MvccError or ValuesNeeded without changing state. */
  decide(request: TxnRequest, pinned: Pinned = NO_PINS): Decision {
    const path = this.#path(request, this.#head, pinned);
    this.#prepare(path, this.#head, pinned);
    const changes: Change[] = [];
    this.#writing = changes;
    let answer: TxnAnswer;
    try {
      answer = this.#apply(path, this.#head + 1, pinned);
    } catch (error) {
      // A range after a delete may need keys that the preparation did not check; all changes are undone then.
      this.#index.takeBack(changes, this.#head + 1);
      throw error;
    } finally {
      this.#writing = [];
    }
    return { answer, decided: this.#seal(changes), revision: this.#head };
  }

  /** Deletes the lease and its keys in one revision. */
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

  /** Allocates `revision` without changes. Neither it nor any unused revision below it is allocated again. */
  skipTo(revision: number): DecidedRevision {
    this.#noteLost(revision);
    this.#head = revision;
    const decided: DecidedRevision = { revision, changes: [] };
    this.#pending.push(decided);
    return decided;
  }

  /** Records that the revisions between the head and the empty `revision` are lost. */
  #noteLost(revision: number): void {
    if (this.#lost.at(-1)?.upTo !== revision) this.#lost.push({ after: this.#head, upTo: revision });
  }

  /**
   * Detects whether a watcher that resumes at `revision` may have seen a revision that was lost later. If so, returns
   * the revision from which the history is valid again; otherwise undefined.
   */
  lostBefore(revision: number): number | undefined {
    return this.#lost.find(({ after, upTo }) => Math.max(after, this.#compacted) + 1 < revision && revision < upTo)
      ?.upTo;
  }

  /** Makes all revisions up to `revision` visible and returns them, oldest first. */
  publish(revision: number): DecidedRevision[] {
    let count = 0;
    while (count < this.#pending.length && (this.#pending[count] as DecidedRevision).revision <= revision) count += 1;
    this.#visible = Math.max(this.#visible, Math.min(revision, this.#head));
    return this.#pending.splice(0, count);
  }

  /** Keeps a value that was read back from the log, if it is still current. */
  refill(version: Version, kv: Buffer): void {
    this.#index.refill(version, kv);
  }

  /** Records that all revisions up to `revision` can be read back from the log. */
  stored(revision: number): void {
    this.#index.stored = Math.max(this.#index.stored, revision);
  }

  /** Rolls back every revision after `to`; none of them may be visible. */
  rollBack(to = this.#visible): void {
    for (let last = this.#pending.at(-1); last !== undefined && last.revision > to; last = this.#pending.at(-1)) {
      this.#index.takeBack(last.changes, last.revision);
      this.#pending.pop();
    }
    this.#head = Math.max(to, this.#visible);
  }

  /**
   * Applies a revision that another member has decided. It becomes visible at once. No revision of this member may be
   * pending.
   */
  accept(revision: number, events: readonly StoredEvent[]): DecidedRevision {
    assert(revision > this.#head, 'a revision is added once, after all earlier ones');
    const changes: Change[] = events.map((event, sub) => {
      const previous = this.#index.at(event.key, this.#head);
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
      this.#index.append(version);
      return { version, previous, field: event.field };
    });
    this.#index.row(revision, events.length);
    if (events.length === 0) this.#noteLost(revision);
    this.#head = revision;
    this.#visible = revision;
    return { revision, changes };
  }

  /** Takes over the content of `other`, which must not be used afterwards. */
  become(other: Machine): void {
    this.leases.become(other.leases);
    this.#index.become(other.#index);
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

  /** Removes about `most` versions that compaction has made unreachable from the index. */
  collect(most: number): CollectedGarbage {
    return this.#index.collect(this.#compacted, most);
  }

  /**
   * Versions in a key range from revision `from` to `to`, in the order of their creation. Returns whole revisions,
   * about `most` versions, each with the previous version of its key.
   */
  changes(
    start: string,
    end: string | undefined,
    from: number,
    to: number,
    most: number,
  ): Array<Omit<Change, 'field'>> {
    return this.#index.changes(start, end, from, to, most);
  }

  #checkRevision(revision: number, newest: number): void {
    if (revision <= 0) return;
    if (revision > newest) throw new MvccError('future-revision');
    if (revision < this.#compacted) throw new MvccError('compacted');
  }

  /**
   * Branch of each transaction, including nested transactions. All compares use the state before any operation is
   * applied.
   */
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
    const value = (version: Version): Buffer => encodedValue(valuesOf([version], pinned)[0] as Buffer);
    if (compare.end === '') return isComparisonTrue(compare, this.#index.at(compare.key, at), value);
    const { start, end } = intervalOf(compare.key, compare.end);
    const found: Version[] = [];
    this.#index.walk(start, end, (history) => {
      const version = liveAt(history, at);
      if (version !== undefined) found.push(version);
    });
    if (found.length === 0) return isComparisonTrue(compare, undefined, value);
    return found.every((version) => isComparisonTrue(compare, version, value));
  }

  /** Checks all operations of a path for errors before any of them is applied. */
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
        readRange(this.#index, operation.range, operation.range.revision > 0 ? operation.range.revision : at, pinned);
      } else if (operation.kind === 'delete') this.#prepareDelete(operation.delete, at, pinned);
      else if (operation.kind === 'txn') this.#prepareRest(path.nested.get(operation) as Path, at, pinned);
    }
  }

  #preparePut(put: PutRequest, at: number, pinned: Pinned): void {
    const current = put.prevKv || put.ignoreValue || put.ignoreLease ? this.#index.at(put.key, at) : undefined;
    if ((put.ignoreValue || put.ignoreLease) && current === undefined) throw new MvccError('key-not-found');
    if (put.lease !== 0n && this.leases.get(put.lease) === undefined) throw new MvccError('lease-not-found');
    if (current !== undefined && (put.prevKv || put.ignoreValue)) valuesOf([current], pinned);
  }

  #prepareDelete(request: DeleteRangeRequest, at: number, pinned: Pinned): void {
    if (!request.prevKv) return;
    valuesOf(this.#index.live(request.key, request.end, at), pinned);
  }

  #apply(path: Path, revision: number, pinned: Pinned): TxnAnswer {
    const answers: Answer[] = [];
    for (const operation of path.operations) {
      if (operation.kind === 'range') {
        const at = operation.range.revision > 0 ? operation.range.revision : revision;
        answers.push(readRange(this.#index, operation.range, at, pinned));
      } else if (operation.kind === 'put') answers.push(this.#put(operation.put, revision, pinned));
      else if (operation.kind === 'delete') {
        const { key, end, prevKv } = operation.delete;
        const removed = this.#remove(key, end, revision);
        const previous = prevKv ? valuesOf(removed, pinned) : [];
        answers.push({ kind: 'delete', deleted: removed.length, previous });
      } else answers.push(this.#apply(path.nested.get(operation) as Path, revision, pinned));
    }
    return { kind: 'txn', succeeded: path.succeeded, answers };
  }

  #put(put: PutRequest, revision: number, pinned: Pinned): Answer {
    const current = this.#index.at(put.key, revision);
    const previous =
      current !== undefined && (put.prevKv || put.ignoreValue) ? valuesOf([current], pinned)[0] : undefined;
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
    this.#index.append(version);
    this.#writing.push({ version, previous: this.#beforeRevision(current, revision), field: encoded.field });
    return { kind: 'put', previous: put.prevKv ? previous : undefined };
  }

  #remove(key: string, end: string, revision: number): Version[] {
    const live = this.#index.live(key, end, revision);
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
      this.#index.append(version);
      this.#writing.push({ version, previous: this.#beforeRevision(current, revision), field: encoded.field });
    }
    return live;
  }

  /**
   * Previous version of a key for an event: the version before `revision`, even if `revision` itself has already
   * written the key.
   */
  #beforeRevision(current: Version | undefined, revision: number): Version | undefined {
    if (current?.revision !== revision) return current;
    return this.#writing.find((change) => change.version === current)?.previous;
  }

  #seal(changes: readonly Change[]): DecidedRevision | undefined {
    if (changes.length === 0) return undefined;
    this.#head += 1;
    const decided: DecidedRevision = { revision: this.#head, changes };
    this.#pending.push(decided);
    this.#index.row(this.#head, changes.length);
    return decided;
  }
}

interface Path {
  readonly succeeded: boolean;
  readonly operations: readonly RequestOp[];
  readonly nested: ReadonlyMap<RequestOp, Path>;
}
