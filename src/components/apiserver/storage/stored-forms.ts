/**
 * The store as it reads where values may be Kubernetes' protobuf, which upstream's API server writes: they are handed on as the JSON that this server
 * writes, so that it can follow upstream's on the same store or on a copy of it. Writes pass unchanged. A value that cannot be read is handed on as
 * it is; the log says so.
 */
import type { KubeObject } from '../../../api/meta/object.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type {
  Commit,
  CommitResult,
  KeyValue,
  RangeOptions,
  RangeResult,
  Revision,
  Store,
  StoreWatch,
  WatchEvent,
  WatchHandler,
} from '../../../core/mvcc/port.ts';
import { decodeProtobuf, isProtobuf } from '../http/protobuf/decode.ts';
import { encodeObject } from './encode.ts';

/** The first byte of the protobuf envelope; JSON never begins so. */
const FIRST = 0x6b;

export class StoredForms implements Store {
  readonly #store: Store;
  readonly #log: Log;

  constructor(store: Store, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  #json(kv: KeyValue): KeyValue {
    if (kv.value[0] !== FIRST) return kv;
    const value = Buffer.from(kv.value.buffer, kv.value.byteOffset, kv.value.byteLength);
    if (!isProtobuf(value)) return kv;
    try {
      const object = decodeProtobuf(value) as KubeObject;
      return { ...kv, value: encodeObject({ apiVersion: object.apiVersion ?? '', kind: object.kind ?? '' }, object) };
    } catch (error) {
      this.#log.v(2, 'stored protobuf cannot be read', { key: kv.key, cause: messageOf(error) });
      return kv;
    }
  }

  async get(key: string, options?: { readonly revision?: Revision }) {
    const { kv, revision } = await this.#store.get(key, options);
    return { kv: kv === undefined ? undefined : this.#json(kv), revision };
  }

  async range(start: string, end: string, options?: RangeOptions): Promise<RangeResult> {
    const found = await this.#store.range(start, end, options);
    return found.kvs.some(({ value }) => value[0] === FIRST)
      ? { ...found, kvs: found.kvs.map((kv) => this.#json(kv)) }
      : found;
  }

  commit(commit: Commit): Promise<CommitResult> {
    return this.#store.commit(commit).then(this.#read);
  }

  readonly #read = (result: CommitResult): CommitResult =>
    result.committed
      ? result
      : { ...result, current: result.current.map((kv) => (kv === undefined ? undefined : this.#json(kv))) };

  watch(start: string, end: string, fromRevision: Revision, handler: WatchHandler): StoreWatch {
    const read = (event: WatchEvent): WatchEvent => {
      if (event.type === 'delete') return event;
      const kv = this.#json(event.kv);
      return kv === event.kv ? event : { ...event, kv };
    };
    return this.#store.watch(start, end, fromRevision, {
      events: (events, revision) =>
        handler.events(events.some(({ kv }) => kv.value[0] === FIRST) ? events.map(read) : events, revision),
      progress: (revision) => handler.progress(revision),
      closed: (error) => handler.closed(error),
    });
  }

  grantLease(ttlSeconds: number): Promise<string> {
    return this.#store.grantLease(ttlSeconds);
  }
  keepLease(lease: string): Promise<boolean> {
    return this.#store.keepLease(lease);
  }
  compact(revision: Revision): Promise<void> {
    return this.#store.compact(revision);
  }
  ping(timeoutMs: number): Promise<void> {
    return this.#store.ping(timeoutMs);
  }
  size(timeoutMs: number): Promise<number> {
    return this.#store.size(timeoutMs);
  }
  close(): Promise<void> {
    return this.#store.close();
  }
}
