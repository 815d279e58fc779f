/**
 * Store decorator for values written by upstream's API server: protobuf, or JSON for kinds without protobuf, in
 * upstream's storage versions. Reads convert them to this server's JSON and versions, so that both servers can use the
 * same store or a copy of it. Writes are passed unchanged. A value that cannot be decoded is returned unchanged and
 * logged.
 */
import { apiVersionOf, type KubeObject } from '../../api/meta/object.ts';
import { kindByGvk } from '../../api/registry/index.ts';
import { messageOf } from '../../base/errors.ts';
import { parseJson } from '../../base/json/json.ts';
import type { Log } from '../../base/log.ts';
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
} from '../../store/port.ts';
import { decodeProtobuf, isProtobuf } from '../http/protobuf/decode.ts';
import { encodeObject } from './encode.ts';

/**
 * 'k': first byte of the protobuf envelope, and third byte of upstream's JSON, which begins with `kind`. This server's
 * JSON begins with `apiVersion`.
 */
const FIRST = 0x6b;
const BRACE = 0x7b;

const isForeign = (value: Uint8Array): boolean => value[0] === FIRST || (value[0] === BRACE && value[2] === FIRST);

/** Converts an object of any version to the form that this server stores. */
function inStoredVersion(object: KubeObject): KubeObject {
  const apiVersion = object.apiVersion ?? '';
  const slash = apiVersion.indexOf('/');
  const gvk = { group: apiVersion.slice(0, Math.max(0, slash)), version: apiVersion.slice(slash + 1) };
  const match = kindByGvk({ ...gvk, kind: object.kind ?? '' });
  if (match?.alias === undefined) return object;
  return { ...match.alias.convertTo(object), apiVersion: apiVersionOf(match.kind), kind: match.kind.kind };
}

export class StoredForms implements Store {
  readonly #store: Store;
  readonly #log: Log;

  constructor(store: Store, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  #json(kv: KeyValue): KeyValue {
    if (!isForeign(kv.value)) return kv;
    const value = Buffer.from(kv.value.buffer, kv.value.byteOffset, kv.value.byteLength);
    const inProtobuf = isProtobuf(value);
    if (kv.value[0] === FIRST && !inProtobuf) return kv;
    try {
      const read = inProtobuf ? (decodeProtobuf(value) as KubeObject) : (parseJson(value.toString()) as KubeObject);
      const object = inStoredVersion(read);
      if (object === read && !inProtobuf) return kv;
      return { ...kv, value: encodeObject({ apiVersion: object.apiVersion ?? '', kind: object.kind ?? '' }, object) };
    } catch (error) {
      this.#log.v(2, 'cannot decode a stored value', { key: kv.key, cause: messageOf(error) });
      return kv;
    }
  }

  async get(key: string, options?: { readonly revision?: Revision }) {
    const { kv, revision } = await this.#store.get(key, options);
    return { kv: kv === undefined ? undefined : this.#json(kv), revision };
  }

  async range(start: string, end: string, options?: RangeOptions): Promise<RangeResult> {
    const found = await this.#store.range(start, end, options);
    return found.kvs.some(({ value }) => isForeign(value))
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
        handler.events(events.some(({ kv }) => isForeign(kv.value)) ? events.map(read) : events, revision),
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
