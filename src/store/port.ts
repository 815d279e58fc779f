/**
 * The store port: the part of etcd's contract that the API server uses. Implementations: memory (tests), and `hyperedge
 * etcd` or a real etcd through the etcd v3 client in `store/client`. Every implementation passes
 * `test/conformance/store.ts`. Revisions are checked safe integers inside and strings at the edges. Source: etcd v3 API
 * (rpc.proto, kv.proto).
 */
import type { Revision } from '../base/brand.ts';

export type { Revision } from '../base/brand.ts';

export interface KeyValue {
  readonly key: string;
  readonly value: Uint8Array;
  readonly createRevision: Revision;
  readonly modRevision: Revision;
}

export interface RangeOptions {
  /** Maximum number of keys; undefined means all. */
  readonly limit?: number;
  /**
   * Revision to read at; undefined means a linearizable read of the current state. Throws StoreError 'compacted' or
   * 'future-revision'.
   */
  readonly revision?: Revision;
  readonly countOnly?: boolean;
  readonly keysOnly?: boolean;
}

export interface RangeResult {
  readonly kvs: readonly KeyValue[];
  /** True if `limit` truncated the result. */
  readonly more: boolean;
  readonly count: number;
  /** The store's revision at the time of the response. */
  readonly revision: Revision;
}

/** Commits only if the key has this mod revision; 0 means the key must not exist. */
export interface Guard {
  readonly key: string;
  readonly modRevision: Revision | 0;
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
   * 'relaxed': applied at once, on disk with the next durable commit or flush interval. 'heartbeat': like 'relaxed',
   * for writes that are repeated regularly, with a flush interval of minutes. Default 'durable'.
   */
  readonly durability?: 'durable' | 'relaxed' | 'heartbeat';
  /** Allows the write to use the reserve while the disk is full, because it frees disk space or keeps a node alive. */
  readonly reserve?: boolean;
}

export type CommitResult =
  | { readonly committed: true; readonly revision: Revision }
  /** `current`: the present values of the guarded keys, in the order of `guards`. */
  | { readonly committed: false; readonly revision: Revision; readonly current: readonly (KeyValue | undefined)[] };

export interface WatchEvent {
  readonly type: 'put' | 'delete';
  /** For a delete, the value is empty and modRevision is the revision of the delete. */
  readonly kv: KeyValue;
}

export interface WatchHandler {
  /** All events of one or more whole revisions, in order. `revision` is the revision of the last event. */
  events(events: readonly WatchEvent[], revision: Revision): void;
  /** No event up to and including `revision` is outstanding for this watch. */
  progress(revision: Revision): void;
  /**
   * The watch has ended permanently; after 'compacted' the caller lists again. The implementation reconnects by itself.
   */
  closed(error: StoreError): void;
}

export interface StoreWatch {
  /** Requests a `progress` call with the store's current revision. */
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
  /** Creates a lease of `ttlSeconds` and returns its ID. Keys attached to it are deleted when it expires. */
  grantLease(ttlSeconds: number): Promise<string>;
  /** Renews a lease for its full TTL. Returns false if it no longer exists. */
  keepLease(lease: string): Promise<boolean>;
  /** Discards history before `revision`. */
  compact(revision: Revision): Promise<void>;
  /**
   * Resolves when the store answers a linearizable read within `timeoutMs`; otherwise throws StoreError 'unavailable'.
   */
  ping(timeoutMs: number): Promise<void>;
  /** Size of the database on disk in bytes, at one of the members. Throws StoreError 'unavailable'. */
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

/** End of the range of all keys with `prefix`. Keys are ASCII. */
export function prefixEnd(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}
