/**
 * The store port: what the API server needs of etcd's contract. Implementations: memory (tests), `hyperedge etcd` and a
 * real etcd, both through the etcd v3 client in `io/grpc`. Every implementation passes `test/conformance/store.ts`.
 * Revisions are checked safe integers inside and strings at the edges. Source: etcd v3 API (rpc.proto, kv.proto).
 */
export type Revision = number;

export interface KeyValue {
  readonly key: string;
  readonly value: Uint8Array;
  readonly createRevision: Revision;
  readonly modRevision: Revision;
}

export interface RangeOptions {
  /** At most this many; undefined: all. */
  readonly limit?: number;
  /** Read at this revision; undefined: linearizable "now". Throws StoreError 'compacted' or 'future-revision'. */
  readonly revision?: Revision;
  readonly countOnly?: boolean;
  readonly keysOnly?: boolean;
}

export interface RangeResult {
  readonly kvs: readonly KeyValue[];
  /** True when `limit` cut the answer. */
  readonly more: boolean;
  readonly count: number;
  /** The store's revision when it answered. */
  readonly revision: Revision;
}

/** Commits only if the key's mod revision is this; 0 means the key does not exist. */
export interface Guard {
  readonly key: string;
  readonly modRevision: Revision;
}

export interface Put {
  readonly key: string;
  readonly value: Uint8Array;
  /** Lease to attach, from `grantLease`. */
  readonly lease?: string;
}

export interface Commit {
  readonly guards: readonly Guard[];
  readonly puts?: readonly Put[];
  readonly deletes?: readonly string[];
  /**
   * 'relaxed': applied at once, on disk with the next durable commit or flush interval. 'heartbeat': the same, for
   * writes that are repeated by themselves, with a flush interval of minutes. Default 'durable'.
   */
  readonly durability?: 'durable' | 'relaxed' | 'heartbeat';
  /**
   * It helps to free the store's disk, or keeps a node alive: taken from what is kept for that while the disk is full.
   */
  readonly reserve?: boolean;
}

export type CommitResult =
  | { readonly committed: true; readonly revision: Revision }
  /** What the guarded keys hold now, in the order of `guards`. */
  | { readonly committed: false; readonly revision: Revision; readonly current: readonly (KeyValue | undefined)[] };

export interface WatchEvent {
  readonly type: 'put' | 'delete';
  /** For a delete: value empty, modRevision the revision of the delete. */
  readonly kv: KeyValue;
}

export interface WatchHandler {
  /** All events of one or more whole revisions, in order. `revision` is that of the last. */
  events(events: readonly WatchEvent[], revision: Revision): void;
  /** No event up to and including `revision` is outstanding for this watch. */
  progress(revision: Revision): void;
  /**
   * The watch has ended for good; after 'compacted' the caller lists again. Reconnecting is the implementation's
   * business.
   */
  closed(error: StoreError): void;
}

export interface StoreWatch {
  /** Asks for a `progress` at the store's current revision soon. */
  requestProgress(): void;
  cancel(): void;
}

export interface Store {
  get(
    key: string,
    options?: { readonly revision?: Revision },
  ): Promise<{ readonly kv: KeyValue | undefined; readonly revision: Revision }>;
  /** Keys in [`start`, `end`) in order. A prefix `p` is [p, prefixEnd(p)). */
  range(start: string, end: string, options?: RangeOptions): Promise<RangeResult>;
  commit(commit: Commit): Promise<CommitResult>;
  /** Watches [start, end) from `fromRevision` (inclusive) with previous values. */
  watch(start: string, end: string, fromRevision: Revision, handler: WatchHandler): StoreWatch;
  /** A lease of `ttlSeconds`; keys attached to it vanish when it expires. Returns its id. */
  grantLease(ttlSeconds: number): Promise<string>;
  /** Lets a lease live for its full time once more. False when it is gone. */
  keepLease(lease: string): Promise<boolean>;
  /** Discards history at and before `revision`. */
  compact(revision: Revision): Promise<void>;
  /** Resolves when the store answers a linearizable read within `timeoutMs`; else throws StoreError 'unavailable'. */
  ping(timeoutMs: number): Promise<void>;
  /** Bytes that its database takes on disk, at one of its members. Throws StoreError 'unavailable'. */
  size(timeoutMs: number): Promise<number>;
  close(): Promise<void>;
}

export type StoreErrorCode =
  | 'compacted'
  | 'future-revision'
  | 'no-space'
  | 'too-large'
  | 'too-many-requests'
  | 'unavailable'
  | 'timeout'
  | 'lease-not-found'
  | 'internal';

export class StoreError extends Error {
  readonly code: StoreErrorCode;
  constructor(code: StoreErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'StoreError';
    this.code = code;
  }
}

/** The end of the range of all keys that begin with `prefix`. Keys are ASCII. */
export function prefixEnd(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}
