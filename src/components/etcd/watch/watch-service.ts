/**
 * `etcdserverpb.Watch`. A watch is either up to date, and then hears of revisions as they are published, or behind: because it
 * starts in the past, or because its peer reads slowly. One that is behind catches up from history, in pieces of whole revisions
 * and only as fast as the peer takes them; so a slow peer costs neither memory nor others' time.
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
  /** Runs something after what has been made ready in this turn has left. */
  readonly defer: (run: () => void) => void;
  /** Why the caller may not watch a range; undefined when it may. */
  readonly refusal: (call: StreamCall, key: string, end: string) => string | undefined;
}

/** Events of one catch-up piece, and their bytes; whole revisions, so a little more when one is large. */
const PIECE = 1000;
const PIECE_BYTES = 4 << 20;
/** Answers larger than this come in fragments to those who allow it: what etcd takes for a request, and what gRPC may add. */
const FRAGMENT_BYTES = MAX_REQUEST_BYTES + (512 << 10);
/** Watches that hear of something in the same turn in which it is published; with more, whoever has written it is answered first. */
const AT_ONCE = 64;
/** The id of an answer that belongs to no watch in particular. Source: etcd clientv3.InvalidWatchID. */
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
  /** The first revision it has not heard of. */
  next: number;
  upToDate = false;
  open = true;
  /** Something was sent since the last periodic progress report. */
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
  /** What is to be delivered before anything else is said, in order. */
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

  /** Tells the watches that are up to date what has become visible. */
  publish(revisions: readonly DecidedRevision[]): void {
    // Where nothing happened something may have been lost, and who came before that was known may have seen it.
    if (revisions.some(({ changes }) => changes.length === 0)) this.resync(0);
    const matched = this.upToDate.match(revisions);
    if (matched.size === 0) return;
    if (this.#held.push(matched) > 1) return;
    // The first turn lets those go who are answered now, the second comes when they have left.
    if (matched.size > AT_ONCE) this.deps.defer(() => this.deps.defer(() => this.deliverHeld()));
    else this.deliverHeld();
  }

  /** Whoever says how far a stream has come does this first. */
  deliverHeld(): void {
    const held = this.#held;
    if (held.length === 0) return;
    this.#held = [];
    for (const matched of held) {
      for (const [watch, changes] of matched) {
        // It may have fallen behind meanwhile, and have caught up from history.
        if (watch.upToDate && (changes[0] as Change).version.revision >= watch.next)
          watch.stream.deliver(watch, changes);
      }
    }
  }

  /** History may have gaps now: every watch goes on from where it is, by way of history. `reached`: what those have heard of that were up to date, if that still holds. */
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
      // Its watches go on, as etcd's do: only cancelling the call ends them.
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
      // Nothing of what came since its last event was about it: that it may be compacted away is no loss.
      if (watch.upToDate) watch.next = Math.max(watch.next, reached + 1);
      this.#fallBehind(watch);
    }
  }

  drained(): void {
    this.#blocked = false;
    this.#startCatchUp();
    this.#reportProgress();
  }

  /** Changes that `watch`, which is up to date, is to hear of now. */
  deliver(watch: Watch, changes: readonly Change[]): void {
    const last = (changes.at(-1) as Change).version.revision;
    const fields = this.#blocked ? undefined : fieldsInMemory(watch, changes);
    if (fields === undefined) {
      // It hears of these later, from history.
      watch.next = (changes[0] as Change).version.revision;
      this.#fallBehind(watch);
      return;
    }
    watch.next = last + 1;
    this.#sendEvents(watch, fields, changes);
  }

  /** What `progress_notify` promises: now and then, that nothing is outstanding. */
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

  /** `from` is the first revision that there is for it. */
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
        // A watch may have fallen behind between the last look and here.
        if (!this.#blocked && !this.#closed && this.#behind.size > 0) this.#startCatchUp();
        else this.#reportProgress();
      });
  }

  async #catchUpAll(): Promise<void> {
    // Those that fall behind meanwhile come at the end.
    for (const watch of this.#behind) {
      await this.#catchUp(watch);
      if (this.#blocked || this.#closed) return;
    }
  }

  async #catchUp(watch: Watch): Promise<void> {
    const { engine } = this.#service.deps;
    const { machine } = engine;
    while (watch.open && !this.#blocked) {
      // What has been lost is, for who has seen it, as good as compacted: it has to look again.
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
      // Compaction overtook the reading.
      if (fields === undefined) continue;
      watch.next = pieceEnd + 1;
      if (fields.length > 0) this.#sendEvents(watch, fields, changes);
    }
  }

  async #fieldsFromHistory(
    watch: Watch,
    changes: ReadonlyArray<Pick<Change, 'version' | 'previous'>>,
  ): Promise<Buffer[] | undefined> {
    // What is in memory now may have made room for what is read before the reading is done: it is held on to.
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

/** The encoded events when everything they need is in memory. One encoding serves every watch. */
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

/** How many of `changes` make whole revisions of about `bytes`, one revision at least. */
function wholeRevisions(changes: ReadonlyArray<Pick<Change, 'version'>>, bytes: number): number {
  let size = 0;
  for (let i = 0; i < changes.length; i += 1) {
    const { version } = changes[i] as Change;
    if (size > bytes && version.revision !== changes[i - 1]?.version.revision) return i;
    size += version.size;
  }
  return changes.length;
}

/** Watches that hear of the same share the list of it. */
const fieldsOf = new WeakMap<readonly Change[], readonly Buffer[]>();
const withPreviousCache = new WeakMap<Change, Buffer>();

function deleteField(version: Version): Buffer {
  return encodeDeleteEvent(version.key, version.revision).field;
}
