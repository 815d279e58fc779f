/**
 * Interfaces of the API client library. The implementation uses HTTPS (undici). All failures are `ApiError`s
 * (api/meta/status.ts). An error of the connection has the reason 'ServiceUnavailable'.
 */
import type { KubeList, KubeObject, ResourceType } from '../api/meta/object.ts';
import type { Pace } from './informers/last-known.ts';

export interface ListOptions {
  /** Namespace of the objects; undefined means all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly limit?: number;
  readonly continue?: string;
  readonly resourceVersion?: string;
  /** Whether only type and metadata of the items are returned. */
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
  /** Namespace of the objects; undefined means all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /**
   * Version after which events are returned. If undefined, the stream starts with synthetic `ADDED` events for the
   * existing objects.
   */
  readonly resourceVersion?: string;
  readonly allowBookmarks?: boolean;
  /** Time after which the server ends the stream. */
  readonly timeoutSeconds?: number;
  /** Whether only type and metadata of the objects are returned. */
  readonly metadataOnly?: boolean;
  readonly signal?: AbortSignal;
}

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  /** Progress of the watch. Of the object, only `metadata.resourceVersion` is valid. */
  | { readonly type: 'BOOKMARK'; readonly object: T };

/**
 * A response whose body is read while it arrives, such as a log or a watch. The caller ends it by leaving the loop or
 * aborting the signal.
 */
export interface ByteStream {
  readonly contentType: string;
  readonly body: AsyncIterable<Uint8Array>;
}

export type PatchType = 'json' | 'merge' | 'strategic' | 'apply';

/** User to impersonate. The user of the client needs the permission to impersonate each attribute. */
export interface Impersonated {
  readonly name: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface ApiClient {
  resource<T extends KubeObject>(type: ResourceType<T>): ResourceClient<T>;
  /** Sends a request to any path, such as discovery, health or reviews. Body and response are JSON. */
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
   * Events of one watch until the server ends it. An `ERROR` event is thrown as its `ApiError`. After code 410, the
   * caller must list again.
   */
  watch(options?: WatchOptions): AsyncIterable<WatchEvent<T>>;
  create(object: T, options?: WriteOptions): Promise<T>;
  /**
   * Replaces an object (PUT) if its resourceVersion is current. `options.subresource: 'status'` replaces the status.
   */
  update(object: T, options?: WriteOptions): Promise<T>;
  patch(
    name: string,
    namespace: string | undefined,
    type: PatchType,
    body: unknown,
    options?: WriteOptions & { readonly force?: boolean },
  ): Promise<T>;
  /** Creates (POST) a subresource of an object, such as `binding`, `token` or `eviction`. */
  createSubresource<R>(name: string, namespace: string | undefined, subresource: string, body: unknown): Promise<R>;
  delete(name: string, namespace?: string, options?: DeleteOptions): Promise<void>;
}

export interface ChangeHandler<T> {
  added?(object: T): void;
  updated?(object: T, old: T): void;
  deleted?(object: T): void;
}

/**
 * A local copy of the objects of a kind, maintained by list and watch with bookmarks. It resumes after disconnects.
 * After 410 it lists again and reports missed deletions. Objects are shared and must not be changed; a handler must
 * copy them first (`structuredClone`).
 */
export interface Informer<T extends KubeObject> {
  readonly type: ResourceType<T>;
  /** Starts list and watch. Repeated calls have no effect. */
  start(): void;
  /**
   * Resolves when the first complete list was delivered to handlers. With `lastKnown` and no reachable API server, this
   * may be the list of an earlier process.
   */
  readonly synced: Promise<void>;
  readonly hasSynced: boolean;
  /** Resolves when the first complete list from the API server was delivered to handlers. */
  readonly listed: Promise<void>;
  /** Whether the API server has sent the first complete list. It is true before that list is delivered to handlers. */
  readonly hasListed: boolean;
  get(key: string): T | undefined;
  list(namespace?: string): T[];
  /** Objects for which the index function returned `value`. */
  byIndex(index: string, value: string): T[];
  addIndex(name: string, valuesOf: (object: T) => readonly string[]): void;
  /** Adds a handler, which receives `added` for all existing objects. Returns a function that removes the handler. */
  onChange(handler: ChangeHandler<T>): () => void;
  stop(): Promise<void>;
}

export interface InformerOptions {
  /** Whether only type and metadata are kept, for components that watch many kinds. */
  readonly metadataOnly?: boolean;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /**
   * Reduces an object to the fields that are kept: name, namespace, uid, resourceVersion, and fields that the caller
   * reads. If it is set, the informer is not shared.
   */
  reduce?(object: KubeObject): KubeObject;
  /** Whether the server may not serve the kind. Then the informer is empty, and the list is repeated every minute. */
  readonly optional?: boolean;
  /** Set in which the objects are stored for a later process, if the factory has storage for it. */
  readonly lastKnown?: LastKnownSet;
}

export interface LastKnownSet {
  /** Name of the set on disk. */
  readonly set: string;
  readonly pace?: Pace;
  /** Whether another informer on this host writes the set. */
  readonly readOnly?: boolean;
  /** Returns the part of an object that is stored; undefined if the object is omitted. */
  kept?(object: KubeObject): KubeObject | undefined;
}

/** Shares one informer per combination of kind and options among the components of a process. */
export interface InformerFactory {
  informer<T extends KubeObject>(type: ResourceType<T>, options?: InformerOptions): Informer<T>;
  /** Starts all created informers and waits until they have synced. */
  startAndSync(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/**
 * A queue of keys. If a key is added while it is processed, it is processed again afterwards. Only one worker processes
 * a key at a time. A failed key is retried with exponential back-off, from 5 ms to 1000 s as in client-go's default
 * rate limiter.
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
   * Records an Event about `object`. Repeated events are aggregated. Never throws or blocks. `fieldPath`: part of the
   * object, such as `spec.containers{web}`. `component`: source of the event, if one recorder serves several
   * components.
   */
  event(
    object: KubeObject,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
    options?: { readonly fieldPath?: string; readonly component?: string },
  ): void;
  /** Writes the queued events for at most `flushMs` (default: two seconds), then drops the remaining events. */
  stop(flushMs?: number): Promise<void>;
}

export interface LeaderElector {
  /**
   * Runs `lead` whenever the lease is held. The signal aborts when the lease is lost. Resolves after `stop()` has
   * released the lease.
   */
  run(lead: (signal: AbortSignal) => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}
