/**
 * Interfaces of the API client library. Implemented here over HTTPS (undici); tests may use a real API server in the
 * same process. All failures are `ApiError`s (api/meta/status.ts); a broken connection has the reason
 * 'ServiceUnavailable'.
 */
import type { KubeList, KubeObject, ResourceType } from '../api/meta/object.ts';
import type { Pace } from './informers/last-known.ts';

export interface ListOptions {
  /** Undefined means all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly limit?: number;
  readonly continue?: string;
  readonly resourceVersion?: string;
  /** Return only type and metadata of the items. */
  readonly metadataOnly?: boolean;
  readonly signal?: AbortSignal;
}

export interface WriteOptions {
  readonly fieldManager?: string;
  readonly dryRun?: boolean;
  readonly subresource?: string;
  readonly signal?: AbortSignal;
}

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Foreground' | 'Background' | 'Orphan';
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

export interface WatchOptions {
  /** Undefined means all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /**
   * Return events after this version. If undefined, the stream starts with synthetic `ADDED` events for the existing
   * objects.
   */
  readonly resourceVersion?: string;
  readonly allowBookmarks?: boolean;
  /** The server ends the stream after this time. */
  readonly timeoutSeconds?: number;
  /** Return only type and metadata of the objects. */
  readonly metadataOnly?: boolean;
  readonly signal?: AbortSignal;
}

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  /** The object only has a valid `metadata.resourceVersion`. */
  | { readonly type: 'BOOKMARK'; readonly object: T };

/** A response whose body is read while it arrives (logs, watches). To end it, leave the loop or abort the signal. */
export interface ByteStream {
  readonly contentType: string;
  readonly body: AsyncIterable<Uint8Array>;
}

export type PatchType = 'json' | 'merge' | 'strategic' | 'apply';

/** User to impersonate. The client needs the permission to impersonate each part. */
export interface Impersonated {
  readonly name: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface ApiClient {
  resource<T extends KubeObject>(type: ResourceType<T>): ResourceClient<T>;
  /** Request to any path: discovery, health, reviews. Body and response are JSON. */
  request<R>(
    method: string,
    path: string,
    body?: unknown,
    options?: { readonly signal?: AbortSignal; readonly impersonate?: Impersonated },
  ): Promise<R>;
  /** Like `request`, but returns the body as a stream without a time limit. */
  stream(
    method: string,
    path: string,
    body?: unknown,
    options?: { readonly signal?: AbortSignal; readonly accept?: string },
  ): Promise<ByteStream>;
  close(): Promise<void>;
}

export interface ResourceClient<T extends KubeObject> {
  get(name: string, namespace?: string): Promise<T>;
  list(options?: ListOptions): Promise<KubeList<T>>;
  /**
   * Events of one watch until the server ends it. An `ERROR` event is thrown as its `ApiError` (410 means: list again).
   */
  watch(options?: WatchOptions): AsyncIterable<WatchEvent<T>>;
  create(object: T, options?: WriteOptions): Promise<T>;
  /** PUT, guarded by the object's resourceVersion. `options.subresource: 'status'` for the status. */
  update(object: T, options?: WriteOptions): Promise<T>;
  patch(
    name: string,
    namespace: string | undefined,
    type: PatchType,
    body: unknown,
    options?: WriteOptions & { readonly force?: boolean },
  ): Promise<T>;
  /** Posts to a subresource of an object (`binding`, `token`, `eviction`). */
  createSubresource<R>(name: string, namespace: string | undefined, subresource: string, body: unknown): Promise<R>;
  delete(name: string, namespace?: string, options?: DeleteOptions): Promise<void>;
}

export interface ChangeHandler<T> {
  added?(object: T): void;
  updated?(object: T, old: T): void;
  deleted?(object: T): void;
}

/**
 * A local copy of a kind, maintained by list and watch with bookmarks. It resumes after disconnects and lists again
 * after 410, with synthetic deletes. Objects are shared and must not be changed: copy them first (`structuredClone`).
 */
export interface Informer<T extends KubeObject> {
  readonly type: ResourceType<T>;
  /** Starts list and watch. Idempotent. */
  start(): void;
  /**
   * Resolves when the first complete list was delivered to handlers. With `lastKnown`, this may be the list of an
   * earlier process if no API server is reachable.
   */
  readonly synced: Promise<void>;
  readonly hasSynced: boolean;
  /** Resolves when the first complete list from the API server was delivered to handlers. */
  readonly listed: Promise<void>;
  /** True before that list is delivered to handlers. */
  readonly hasListed: boolean;
  get(key: string): T | undefined;
  list(namespace?: string): T[];
  /** Objects for which the index function returned `value`. */
  byIndex(index: string, value: string): T[];
  addIndex(name: string, valuesOf: (object: T) => readonly string[]): void;
  /** Adds a handler. It gets `added` for all existing objects. Returns a function that removes it. */
  onChange(handler: ChangeHandler<T>): () => void;
  stop(): Promise<void>;
}

export interface InformerOptions {
  /** Keep only type and metadata, for components that watch many kinds. */
  readonly metadataOnly?: boolean;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /**
   * Reduces an object to the fields to keep: name, namespace, uid, resourceVersion, and fields that the caller reads.
   * The informer is then not shared.
   */
  reduce?(object: KubeObject): KubeObject;
  /** The server may lack the kind. Then there are no objects, and the list is retried every minute. */
  readonly optional?: boolean;
  /** If set, the copy outlives the process, if the factory has storage for it. */
  readonly lastKnown?: LastKnownSet;
}

export interface LastKnownSet {
  /** Name of the set on disk. */
  readonly set: string;
  readonly pace?: Pace;
  /** Another informer on this host writes the set. */
  readonly readOnly?: boolean;
  /** Part of an object that is stored; undefined to omit the object. */
  kept?(object: KubeObject): KubeObject | undefined;
}

/** Shares one informer per kind and options among the components of a process. */
export interface InformerFactory {
  informer<T extends KubeObject>(type: ResourceType<T>, options?: InformerOptions): Informer<T>;
  /** Starts all created informers and waits until they have synced. */
  startAndSync(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/**
 * A queue of keys instead of events. A key that is added while it is processed runs again afterwards; only one worker
 * processes a key at a time; failures are retried with exponential back-off (5 ms … 1000 s, as in client-go's default
 * rate limiter).
 */
export interface WorkQueue {
  add(key: string): void;
  addAfter(key: string, delayMs: number): void;
  readonly length: number;
  stop(): Promise<void>;
}

export type Reconcile = (key: string) => Promise<void>;

export interface EventRecorder {
  /**
   * Records an Event about `object` and aggregates repeats. Never throws or blocks. `fieldPath` names a part of the
   * object, for example `spec.containers{web}`. `component` overrides the source, if one recorder serves several
   * components.
   */
  event(
    object: KubeObject,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
    options?: { readonly fieldPath?: string; readonly component?: string },
  ): void;
  /** Writes queued events for at most `flushMs` (default: two seconds), then stops and drops the others. */
  stop(flushMs?: number): Promise<void>;
}

export interface LeaderElector {
  /**
   * Runs `lead` while the lease is held; its signal aborts when the lease is lost. Resolves after `stop()` has released
   * the lease.
   */
  run(lead: (signal: AbortSignal) => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}
