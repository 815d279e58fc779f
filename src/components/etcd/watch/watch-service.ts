/**
 * `etcdserverpb.Watch`. A watch is either synced and receives revisions as they are published, or behind, because it
 * starts in the past or its client reads slowly. A watch that is behind catches up from history, in pieces of whole
 * revisions and as fast as its client reads, so a slow client costs neither memory nor the time of others.
 */

import { encodeDeleteEvent, putField, withPrevious } from '../../../api/etcd/event.ts';
import { decodeWatchRequest, type WatchCreateRequest } from '../../../api/etcd/watch.ts';
import type { Writer } from '../../../api/etcd/wire.ts';
import type { Clock, Timer } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import { MvccError } from '../../../core/mvcc/errors.ts';
import type { Change, DecidedRevision } from '../../../core/mvcc/machine.ts';
import { intervalOf } from '../../../core/mvcc/txn-check.ts';
import { isDelete, type Version } from '../../../core/mvcc/version.ts';
import { Watchers } from '../../../core/mvcc/watchers.ts';
import type { StreamCall, StreamHandler } from '../port.ts';
import type { Engine } from '../replication/engine.ts';
import type { Encoder } from '../services/encode.ts';
import { MAX_REQUEST_BYTES } from '../services/kv-service.ts';
import { failureOf } from '../services/rpc-errors.ts';

export interface WatchServiceDeps {
  readonly engine: Engine;
  readonly encoder: Encoder;
  readonly clock: Clock;
  readonly log: Log;
  readonly progressIntervalMs: number;
  readonly fragmentBytes?: number;
  /** Runs a callback after the responses of this turn were sent. */
  readonly defer: (run: () => void) => void;
  /** Why the caller may not watch a range; undefined when it may. */
  readonly refusal: (call: StreamCall, key: string, end: string) => string | undefined;
}

/** Bounds of one catch-up piece, in events and bytes; exceeded only to complete a revision. */
const PIECE = 1000;
const PIECE_BYTES = 4 << 20;
/** Larger responses are fragmented for clients that allow it: etcd's request limit plus gRPC's overhead. */
const FRAGMENT_BYTES = MAX_REQUEST_BYTES + (512 << 10);
/** Watches notified in the turn of the publication; with more, the writer is answered first. */
const AT_ONCE = 64;
/** The id of a response to no watch in particular. Source: etcd clientv3.InvalidWatchID. */
const NO_WATCH = -1;

class Watch {
  readonly id: number;
  readonly start: string;
  readonly end: string | undefined;
  readonly single: boolean;
  readonly noPut: boolean;
  readonly noDelete: boolean;
  readonly prevKv: boolean;
  readonly fragment: boolean;
  readonly progressNotify: boolean;
  readonly stream: WatchStream;
  /** The first revision that was not sent. */
  next: number;
  upToDate = false;
  open = true;
  /** An event was sent since the last periodic progress report. */
  active = false;

  constructor(stream: WatchStream, id: number, request: WatchCreateRequest, next: number) {
    const key = request.key === '' ? '\0' : request.key;
    const interval = intervalOf(key, request.end);
    this.stream = stream;
    this.id = id;
    this.start = interval.start;
    this.end = interval.end;
    this.single = request.end === '';
    this.noPut = request.noPut;
    this.noDelete = request.noDelete;
    this.prevKv = request.prevKv;
    this.fragment = request.fragment;
    this.progressNotify = request.progressNotify;
    this.next = next;
  }
}

export class WatchService {
  readonly deps: WatchServiceDeps;
  readonly upToDate = new Watchers<Watch>();
  readonly #streams = new Set<WatchStream>();
  /** Events to deliver, in order, before any other response. */
  #held: Array<ReadonlyMap<Watch, readonly Change[]>> = [];
  #timer: Timer | undefined;
  #count = 0;

  constructor(deps: WatchServiceDeps) {
    this.deps = deps;
  }

  get streamCount(): number {
    return this.#streams.size;
  }

  get watchCount(): number {
    return this.#count;
  }

  /** Watches that are behind. */
  get slowCount(): number {
    let count = 0;
    for (const stream of this.#streams) count += stream.slowCount;
    return count;
  }

  /** Events sent since the start. */
  eventCount = 0;

  start(): void {
    this.#timer = this.deps.clock.setTimer(this.deps.progressIntervalMs, () => {
      this.deliverHeld();
      for (const stream of this.#streams) stream.reportPeriodically();
      this.start();
    });
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** Delivers newly visible revisions to the synced watches. */
  publish(revisions: readonly DecidedRevision[]): void {
    // A revision without changes marks revisions that may have been lost after a client saw them.
    if (revisions.some(({ changes }) => changes.length === 0)) this.resync(0);
    const matched = this.upToDate.match(revisions);
    if (matched.size === 0) return;
    if (this.#held.push(matched) > 1) return;
    // Responses to writers are sent after the first deferral, events after the second.
    if (matched.size > AT_ONCE) this.deps.defer(() => this.deps.defer(() => this.deliverHeld()));
    else this.deliverHeld();
  }

  /** Has to run before any progress report. */
  deliverHeld(): void {
    const held = this.#held;
    if (held.length === 0) return;
    this.#held = [];
    for (const matched of held) {
      for (const [watch, changes] of matched) {
        // The watch may have fallen behind and caught up from history meanwhile.
        if (watch.upToDate && (changes[0] as Change).version.revision >= watch.next)
          watch.stream.deliver(watch, changes);
      }
    }
  }

  /**
   * History may have gaps: every watch continues from its position through history. `reached`: the revision that synced
   * watches have received, if that is still valid.
   */
  resync(reached: number): void {
    this.deliverHeld();
    for (const stream of this.#streams) stream.resync(reached);
  }

  counted(difference: number): void {
    this.#count += difference;
  }

  readonly handler = (call: StreamCall): StreamHandler => {
    const stream = new WatchStream(this, call);
    this.#streams.add(stream);
    return {
      message: (message) => stream.message(message),
      // Its watches continue, as in etcd: only cancelling the call ends them.
      ended: () => {},
      closed: () => {
        stream.close();
        this.#streams.delete(stream);
      },
      drained: () => stream.drained(),
    };
  };
}

class WatchStream {
  readonly #service: WatchService;
  readonly #call: StreamCall;
  readonly #watches = new Map<number, Watch>();
  readonly #behind = new Set<Watch>();
  #nextId = 0;
  #blocked = false;
  #closed = false;
  #progressWanted = false;
  #catchingUp = false;

  constructor(service: WatchService, call: StreamCall) {
    this.#service = service;
    this.#call = call;
  }

  get slowCount(): number {
    return this.#behind.size;
  }

  message(bytes: Uint8Array): void {
    try {
      const request = decodeWatchRequest(bytes);
      if (request?.kind === 'create') this.#create(request.create);
      else if (request?.kind === 'cancel') this.#cancel(request.watchId);
      else if (request?.kind === 'progress') {
        this.#progressWanted = true;
        this.#reportProgress();
      }
    } catch (error) {
      const { code, message } = failureOf(error, this.#service.deps.log);
      this.close();
      this.#call.end(code, message);
    }
  }

  close(): void {
    this.#closed = true;
    for (const watch of this.#watches.values()) this.#forget(watch);
  }

  resync(reached: number): void {
    for (const watch of this.#watches.values()) {
      // No revision since its last event matched the watch: compaction of those loses nothing.
      if (watch.upToDate) watch.next = Math.max(watch.next, reached + 1);
      this.#fallBehind(watch);
    }
  }

  drained(): void {
    this.#blocked = false;
    this.#startCatchUp();
    this.#reportProgress();
  }

  /** Sends changes to `watch`, which is synced. */
  deliver(watch: Watch, changes: readonly Change[]): void {
    const last = (changes.at(-1) as Change).version.revision;
    const fields = this.#blocked ? undefined : fieldsInMemory(watch, changes);
    if (fields === undefined) {
      // These changes are sent later, from history.
      watch.next = (changes[0] as Change).version.revision;
      this.#fallBehind(watch);
      return;
    }
    watch.next = last + 1;
    this.#sendEvents(watch, fields, changes);
  }

  /** `progress_notify`: reports periodically that no event is outstanding. */
  reportPeriodically(): void {
    for (const watch of this.#watches.values()) {
      if (watch.progressNotify && watch.upToDate && !watch.active && !this.#blocked) {
        this.#send(watch.id, this.#service.deps.engine.machine.visible);
      }
      watch.active = false;
    }
  }

  #create(request: WatchCreateRequest): void {
    this.#service.deliverHeld();
    const { machine } = this.#service.deps.engine;
    const refuse = (reason: string): void =>
      this.#send(NO_WATCH, machine.visible, (out) => out.bool(3, true).bool(4, true).string(6, reason));
    if (request.end !== '' && request.end !== '\0' && request.end <= request.key) {
      refuse('mvcc: watcher range is empty');
      return;
    }
    const denied = this.#service.deps.refusal(this.#call, request.key === '' ? '\0' : request.key, request.end);
    if (denied !== undefined) {
      refuse(denied);
      return;
    }
    if (request.watchId !== 0 && this.#watches.has(request.watchId)) {
      refuse('mvcc: duplicate watch ID provided on the WatchStream');
      return;
    }
    let id = request.watchId;
    if (id === 0) {
      while (this.#watches.has(this.#nextId)) this.#nextId += 1;
      id = this.#nextId;
      this.#nextId += 1;
    }
    const next = request.startRevision > 0 ? request.startRevision : machine.visible + 1;
    const watch = new Watch(this, id, request, next);
    this.#watches.set(id, watch);
    this.#service.counted(1);
    this.#send(id, machine.visible, (out) => out.bool(3, true));
    if (next < machine.compacted) this.#refuse(watch, machine.compacted);
    else this.#fallBehind(watch);
  }

  #cancel(id: number): void {
    this.#service.deliverHeld();
    const watch = this.#watches.get(id);
    if (watch === undefined) return;
    this.#forget(watch);
    this.#send(id, this.#service.deps.engine.machine.visible, (out) => out.bool(4, true));
    this.#reportProgress();
  }

  /** `from` is the first revision available to it. */
  #refuse(watch: Watch, from: number): void {
    this.#forget(watch);
    this.#send(watch.id, this.#service.deps.engine.machine.visible, (out) => out.bool(4, true).int(5, from));
  }

  #forget(watch: Watch): void {
    if (!watch.open) return;
    watch.open = false;
    this.#watches.delete(watch.id);
    this.#service.counted(-1);
    if (watch.upToDate) this.#service.upToDate.remove(watch);
    watch.upToDate = false;
    this.#behind.delete(watch);
  }

  #fallBehind(watch: Watch): void {
    if (watch.upToDate) this.#service.upToDate.remove(watch);
    watch.upToDate = false;
    this.#behind.add(watch);
    this.#startCatchUp();
  }

  #startCatchUp(): void {
    if (this.#catchingUp || this.#blocked || this.#closed) return;
    this.#catchingUp = true;
    this.#catchUpAll()
      .catch((error: unknown) => {
        const { code, message } = failureOf(error, this.#service.deps.log);
        this.close();
        this.#call.end(code, message);
      })
      .finally(() => {
        this.#catchingUp = false;
        // A watch may have fallen behind since the last check.
        if (!this.#blocked && !this.#closed && this.#behind.size > 0) this.#startCatchUp();
        else this.#reportProgress();
      });
  }

  async #catchUpAll(): Promise<void> {
    // Watches that fall behind meanwhile are appended.
    for (const watch of this.#behind) {
      await this.#catchUp(watch);
      if (this.#blocked || this.#closed) return;
    }
  }

  async #catchUp(watch: Watch): Promise<void> {
    const { engine } = this.#service.deps;
    const { machine } = engine;
    while (watch.open && !this.#blocked) {
      // Lost revisions count as compacted for a client that may have seen them: it has to list again.
      const truth = watch.next < machine.compacted ? machine.compacted : machine.lostBefore(watch.next);
      if (truth !== undefined) {
        this.#refuse(watch, truth);
        return;
      }
      const upTo = machine.visible;
      if (watch.next > upTo) {
        watch.upToDate = true;
        this.#behind.delete(watch);
        this.#service.upToDate.add(watch);
        return;
      }
      const found = machine.changes(watch.start, watch.end, watch.next, upTo, PIECE);
      const all = found.slice(0, wholeRevisions(found, PIECE_BYTES));
      const changes = all.filter(({ version }) => (isDelete(version) ? !watch.noDelete : !watch.noPut));
      const cut = all.length < found.length || found.length >= PIECE;
      const pieceEnd = cut ? (all.at(-1)?.version.revision ?? upTo) : upTo;
      const fields = await this.#fieldsFromHistory(watch, changes);
      if (!watch.open) return;
      // Compaction removed values while they were read.
      if (fields === undefined) continue;
      watch.next = pieceEnd + 1;
      if (fields.length > 0) this.#sendEvents(watch, fields, changes);
    }
  }

  async #fieldsFromHistory(
    watch: Watch,
    changes: ReadonlyArray<Pick<Change, 'version' | 'previous'>>,
  ): Promise<Buffer[] | undefined> {
    // Pins values in memory: the read below may evict them from the cache.
    const held = new Map<Version, Buffer>();
    const missing: Version[] = [];
    const want = (version: Version): void => {
      if (version.kv === undefined) missing.push(version);
      else held.set(version, version.kv);
    };
    for (const { version, previous } of changes) {
      if (!isDelete(version)) want(version);
      if (watch.prevKv && previous !== undefined) want(previous);
    }
    let values: ReadonlyMap<Version, Buffer> = held;
    if (missing.length > 0) {
      try {
        values = await this.#service.deps.engine.values({ versions: missing, among: missing.length + held.size }, held);
      } catch (error) {
        if (error instanceof MvccError && error.code === 'compacted') return undefined;
        throw error;
      }
    }
    const valueIn = (version: Version): Buffer => {
      const kv = values.get(version);
      if (kv === undefined) throw new Error(`revision ${version.revision} of a watched key has no value`);
      return kv;
    };
    return changes.map(({ version, previous }) => {
      const field = isDelete(version) ? deleteField(version) : putField(valueIn(version));
      return watch.prevKv && previous !== undefined ? withPrevious(field, valueIn(previous)) : field;
    });
  }

  #sendEvents(watch: Watch, fields: readonly Buffer[], changes: ReadonlyArray<Pick<Change, 'version'>>): void {
    watch.active = true;
    this.#service.eventCount += fields.length;
    const { visible } = this.#service.deps.engine.machine;
    if (!watch.fragment) {
      this.#sendParts(header(this.#service.deps.encoder, watch.id, visible), fields);
      return;
    }
    const most = this.#service.deps.fragmentBytes ?? FRAGMENT_BYTES;
    let from = 0;
    let size = 0;
    for (let i = 0; i < fields.length; i += 1) {
      const length = (fields[i] as Buffer).length;
      if (size > 0 && size + length > most) {
        this.#sendParts(
          header(this.#service.deps.encoder, watch.id, visible, (out) => out.bool(7, true)),
          fields.slice(from, i),
        );
        from = i;
        size = 0;
      }
      size += length;
    }
    this.#sendParts(
      header(this.#service.deps.encoder, watch.id, visible),
      changes.length > 0 ? fields.slice(from) : [],
    );
  }

  #reportProgress(): void {
    if (!this.#progressWanted) return;
    this.#service.deliverHeld();
    if (this.#blocked || this.#closed || this.#catchingUp || this.#behind.size > 0) return;
    this.#progressWanted = false;
    this.#send(NO_WATCH, this.#service.deps.engine.machine.visible);
  }

  #send(id: number, revision: number, more?: (out: Writer) => Writer): void {
    this.#sendParts(header(this.#service.deps.encoder, id, revision, more), []);
  }

  #sendParts(head: Buffer, fields: readonly Buffer[]): void {
    if (this.#closed) return;
    if (!this.#call.send(head, ...fields)) this.#blocked = true;
  }
}

function header(encoder: Encoder, id: number, revision: number, more?: (out: Writer) => Writer): Buffer {
  const out = encoder.begin(revision).int(2, id);
  return (more === undefined ? out : more(out)).finishBriefly();
}

/** The encoded events when all values are in memory. One encoding serves every watch. */
function fieldsInMemory(watch: Watch, changes: readonly Change[]): readonly Buffer[] | undefined {
  if (!watch.prevKv) {
    let fields = fieldsOf.get(changes);
    if (fields === undefined) {
      fields = changes.map((change) => change.field);
      fieldsOf.set(changes, fields);
    }
    return fields;
  }
  const fields: Buffer[] = [];
  for (const change of changes) {
    if (change.previous === undefined) fields.push(change.field);
    else {
      let field = withPreviousCache.get(change);
      if (field === undefined) {
        if (change.previous.kv === undefined) return undefined;
        field = withPrevious(change.field, change.previous.kv);
        withPreviousCache.set(change, field);
      }
      fields.push(field);
    }
  }
  return fields;
}

/** How many of `changes` make whole revisions of about `bytes`; one revision at least. */
function wholeRevisions(changes: ReadonlyArray<Pick<Change, 'version'>>, bytes: number): number {
  let size = 0;
  for (let i = 0; i < changes.length; i += 1) {
    const { version } = changes[i] as Change;
    if (size > bytes && version.revision !== changes[i - 1]?.version.revision) return i;
    size += version.size;
  }
  return changes.length;
}

/** Watches that receive the same changes share the list of encoded events. */
const fieldsOf = new WeakMap<readonly Change[], readonly Buffer[]>();
const withPreviousCache = new WeakMap<Change, Buffer>();

function deleteField(version: Version): Buffer {
  return encodeDeleteEvent(version.key, version.revision).field;
}
