/** The watches of one stream: creation, delivery, catch-up from history and progress reports. */

import type { StreamCall } from '../../wire/grpc/port.ts';
import type { Writer } from '../../wire/protobuf/protobuf.ts';
import { putField, withPrevious } from '../core/messages/event.ts';
import { decodeWatchRequest, type WatchCreateRequest } from '../core/messages/watch.ts';
import { MvccError } from '../core/mvcc/errors.ts';
import type { Change } from '../core/mvcc/machine.ts';
import { isDelete, type Version } from '../core/mvcc/version.ts';
import type { Encoder } from '../services/encode.ts';
import { MAX_REQUEST_BYTES } from '../services/kv-service.ts';
import { failureOf } from '../services/rpc-errors.ts';
import { Watch, type WatchHub, type WatchSink } from './watch.ts';
import { deleteField, fieldsInMemory, wholeRevisions } from './watch-events.ts';

/** Limits of one catch-up piece in events and bytes. They are exceeded only to complete a revision. */
const PIECE = 1000;
const PIECE_BYTES = 4 << 20;
/** Larger responses are fragmented for clients that allow it: etcd's request limit plus gRPC's overhead. */
const FRAGMENT_BYTES = MAX_REQUEST_BYTES + (512 << 10);
/** Watch ID of a response that belongs to no watch. Source: etcd clientv3.InvalidWatchID. */
const NO_WATCH = -1;

export class WatchStream implements WatchSink {
  readonly #hub: WatchHub;
  readonly #call: StreamCall;
  readonly #watches = new Map<number, Watch>();
  readonly #behind = new Set<Watch>();
  #nextId = 0;
  #blocked = false;
  #closed = false;
  #progressWanted = false;
  #catchingUp = false;

  constructor(hub: WatchHub, call: StreamCall) {
    this.#hub = hub;
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
      const { code, message } = failureOf(error, this.#hub.deps.log);
      this.close();
      this.#call.end(code, message);
    }
    // The responses to further requests would fill the memory while the client reads none.
    if (this.#blocked) this.#call.pause();
  }

  close(): void {
    this.#closed = true;
    for (const watch of this.#watches.values()) this.#forget(watch);
  }

  resync(reached: number): void {
    for (const watch of this.#watches.values()) {
      // A synced watch has received all its events up to `reached`, so compaction of these revisions loses no event.
      if (watch.upToDate) watch.next = Math.max(watch.next, reached + 1);
      this.#fallBehind(watch);
    }
  }

  drained(): void {
    this.#blocked = false;
    this.#startCatchUp();
    this.#reportProgress();
    this.#call.resume();
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
        this.#send(watch.id, this.#hub.deps.engine.machine.visible);
      }
      watch.active = false;
    }
  }

  #create(request: WatchCreateRequest): void {
    this.#hub.deliverHeld();
    const { machine } = this.#hub.deps.engine;
    const refuse = (reason: string): void =>
      this.#send(NO_WATCH, machine.visible, (out) => out.bool(3, true).bool(4, true).string(6, reason));
    if (request.end !== '' && request.end !== '\0' && request.end <= request.key) {
      refuse('mvcc: watcher range is empty');
      return;
    }
    const denied = this.#hub.deps.refusal(this.#call, request.key === '' ? '\0' : request.key, request.end);
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
    this.#hub.counted(1);
    this.#send(id, machine.visible, (out) => out.bool(3, true));
    if (next < machine.compacted) this.#refuse(watch, machine.compacted);
    else this.#fallBehind(watch);
  }

  #cancel(id: number): void {
    this.#hub.deliverHeld();
    const watch = this.#watches.get(id);
    if (watch === undefined) return;
    this.#forget(watch);
    this.#send(id, this.#hub.deps.engine.machine.visible, (out) => out.bool(4, true));
    this.#reportProgress();
  }

  /** Cancels a watch that needs compacted revisions. `from`: first revision available to the watch. */
  #refuse(watch: Watch, from: number): void {
    this.#forget(watch);
    this.#send(watch.id, this.#hub.deps.engine.machine.visible, (out) => out.bool(4, true).int(5, from));
  }

  #forget(watch: Watch): void {
    if (!watch.open) return;
    watch.open = false;
    this.#watches.delete(watch.id);
    this.#hub.counted(-1);
    if (watch.upToDate) this.#hub.upToDate.remove(watch);
    watch.upToDate = false;
    this.#behind.delete(watch);
  }

  #fallBehind(watch: Watch): void {
    if (watch.upToDate) this.#hub.upToDate.remove(watch);
    watch.upToDate = false;
    this.#behind.add(watch);
    this.#startCatchUp();
  }

  #startCatchUp(): void {
    if (this.#catchingUp || this.#blocked || this.#closed) return;
    this.#catchingUp = true;
    this.#catchUpAll()
      .catch((error: unknown) => {
        const { code, message } = failureOf(error, this.#hub.deps.log);
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
    // Watches that fall behind in the meantime are appended to the set, so the loop reaches them as well.
    for (const watch of this.#behind) {
      await this.#catchUp(watch);
      if (this.#blocked || this.#closed) return;
    }
  }

  async #catchUp(watch: Watch): Promise<void> {
    const { engine } = this.#hub.deps;
    const { machine } = engine;
    while (watch.open && !this.#blocked) {
      // Lost revisions count as compacted for a client that may have received them, so it has to list again.
      const compacted = watch.next < machine.compacted ? machine.compacted : machine.lostBefore(watch.next);
      if (compacted !== undefined) {
        this.#refuse(watch, compacted);
        return;
      }
      const upTo = machine.visible;
      if (watch.next > upTo) {
        watch.upToDate = true;
        this.#behind.delete(watch);
        this.#hub.upToDate.add(watch);
        return;
      }
      const found = machine.changes(watch.start, watch.end, watch.next, upTo, PIECE);
      const all = found.slice(0, wholeRevisions(found, PIECE_BYTES));
      const changes = all.filter(({ version }) => (isDelete(version) ? !watch.noDelete : !watch.noPut));
      const cut = all.length < found.length || found.length >= PIECE;
      const pieceEnd = cut ? (all.at(-1)?.version.revision ?? upTo) : upTo;
      const fields = await this.#fieldsFromHistory(watch, changes);
      if (!watch.open) return;
      // Compaction removed values during the read.
      if (fields === undefined) continue;
      watch.next = pieceEnd + 1;
      if (fields.length > 0) this.#sendEvents(watch, fields, changes);
    }
  }

  async #fieldsFromHistory(
    watch: Watch,
    changes: ReadonlyArray<Pick<Change, 'version' | 'previous'>>,
  ): Promise<Buffer[] | undefined> {
    // Pins values in memory, because the read below may evict them from the cache.
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
        values = await this.#hub.deps.engine.values({ versions: missing, among: missing.length + held.size }, held);
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
    this.#hub.eventCount += fields.length;
    const { visible } = this.#hub.deps.engine.machine;
    if (!watch.fragment) {
      this.#sendParts(header(this.#hub.deps.encoder, watch.id, visible), fields);
      return;
    }
    const most = this.#hub.deps.fragmentBytes ?? FRAGMENT_BYTES;
    let from = 0;
    let size = 0;
    for (let i = 0; i < fields.length; i += 1) {
      const length = (fields[i] as Buffer).length;
      if (size > 0 && size + length > most) {
        this.#sendParts(
          header(this.#hub.deps.encoder, watch.id, visible, (out) => out.bool(7, true)),
          fields.slice(from, i),
        );
        from = i;
        size = 0;
      }
      size += length;
    }
    this.#sendParts(header(this.#hub.deps.encoder, watch.id, visible), changes.length > 0 ? fields.slice(from) : []);
  }

  #reportProgress(): void {
    if (!this.#progressWanted) return;
    this.#hub.deliverHeld();
    if (this.#blocked || this.#closed || this.#catchingUp || this.#behind.size > 0) return;
    this.#progressWanted = false;
    this.#send(NO_WATCH, this.#hub.deps.engine.machine.visible);
  }

  #send(id: number, revision: number, more?: (out: Writer) => Writer): void {
    this.#sendParts(header(this.#hub.deps.encoder, id, revision, more), []);
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
