/**
 * What components use to meet through the API. Implemented in this room over HTTPS (undici); tests may run it against a
 * real API server in the same process. All failures are `ApiError`s (api/meta/status.ts); a broken connection is
 * 'ServiceUnavailable'.
 */
import type { KubeList, KubeObject, ResourceType } from '../api/meta/object.ts';
import type { Pace } from './last-known.ts';

export interface ListOptions {
  /** Undefined: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly limit?: number;
  readonly continue?: string;
  readonly resourceVersion?: string;
  /** Items carry nothing but their type and metadata. */
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
  /** Undefined: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Events after this version; undefined: begins with synthetic `ADDED` events of the present state. */
  readonly resourceVersion?: string;
  readonly allowBookmarks?: boolean;
  /** After this long the server ends the stream. */
  readonly timeoutSeconds?: number;
  /** Objects carry nothing but their type and metadata. */
  readonly metadataOnly?: boolean;
  readonly signal?: AbortSignal;
}

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  /** Only `metadata.resourceVersion` of the object is meaningful. */
  | { readonly type: 'BOOKMARK'; readonly object: T };

/** An answer whose body is consumed as it arrives (logs, watches). Leave the loop or abort the signal to end it. */
export interface ByteStream {
  readonly contentType: string;
  readonly body: AsyncIterable<Uint8Array>;
}

export type PatchType = 'json' | 'merge' | 'strategic' | 'apply';

/** A user in whose name a request is made; the client needs the permission to impersonate each part. */
export interface Impersonated {
  readonly name: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface ApiClient {
  resource<T extends KubeObject>(type: ResourceType<T>): ResourceClient<T>;
  /** Any path: discovery, health, reviews. Body and answer are JSON. */
  request<R>(
    method: string,
    path: string,
    body?: unknown,
    options?: { readonly signal?: AbortSignal; readonly impersonate?: Impersonated },
  ): Promise<R>;
  /** Like `request`, but hands out the body's bytes as they arrive and sets no limit on how long that takes. */
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
   * The events of one watch connection, until the server ends it. An `ERROR` event is thrown as its `ApiError` (410:
   * list again).
   */
  watch(options?: WatchOptions): AsyncIterable<WatchEvent<T>>;
  create(object: T, options?: WriteOptions): Promise<T>;
  /** PUT; the object's resourceVersion guards it. `options.subresource: 'status'` for status. */
  update(object: T, options?: WriteOptions): Promise<T>;
  patch(
    name: string,
    namespace: string | undefined,
    type: PatchType,
    body: unknown,
    options?: WriteOptions & { readonly force?: boolean },
  ): Promise<T>;
  /** Posts to a sub-resource of a named object (`binding`, `token`, `eviction`). */
  createSubresource<R>(name: string, namespace: string | undefined, subresource: string, body: unknown): Promise<R>;
  delete(name: string, namespace?: string, options?: DeleteOptions): Promise<void>;
}

export interface ChangeHandler<T> {
  added?(object: T): void;
  updated?(object: T, old: T): void;
  deleted?(object: T): void;
}

/**
 * A local copy of a kind, kept by list + watch with bookmarks, resumed after disconnects, relisted after 410 with
 * synthetic deletes. Objects in it are shared and frozen by convention: copy before changing (`structuredClone`).
 */
export interface Informer<T extends KubeObject> {
  readonly type: ResourceType<T>;
  /** Begins list + watch. Idempotent. */
  start(): void;
  /**
   * Resolves after the first complete list has been delivered to handlers. With `lastKnown` that may be the one of an
   * earlier process, when no API server is in reach.
   */
  readonly synced: Promise<void>;
  readonly hasSynced: boolean;
  /** Resolves after the first complete list of the API server has been delivered to handlers. */
  readonly listed: Promise<void>;
  /** From before the handlers hear of that list. */
  readonly hasListed: boolean;
  get(key: string): T | undefined;
  list(namespace?: string): T[];
  /** Objects whose index function returned `value`. */
  byIndex(index: string, value: string): T[];
  addIndex(name: string, valuesOf: (object: T) => readonly string[]): void;
  /** Handlers added late get `added` for everything present. Returns an unsubscribe. */
  onChange(handler: ChangeHandler<T>): () => void;
  stop(): Promise<void>;
}

export interface InformerOptions {
  /** The copy holds nothing but types and metadata: for those who look at many kinds and read none. */
  readonly metadataOnly?: boolean;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /**
   * What the copy keeps of an object: its name, namespace, uid, resourceVersion, and what the caller reads. Such an
   * informer is not shared.
   */
  reduce?(object: KubeObject): KubeObject;
  /** The server may not serve the kind: there are no objects then, and every minute it is asked again. */
  readonly optional?: boolean;
  /** Present: the copy outlives the process, where the factory has a place for it. */
  readonly lastKnown?: LastKnownSet;
}

export interface LastKnownSet {
  /** Name of the set on disk. */
  readonly set: string;
  readonly pace?: Pace;
  /** Another informer of this host writes the set. */
  readonly readOnly?: boolean;
  /** What of an object outlives the process; undefined: nothing. */
  kept?(object: KubeObject): KubeObject | undefined;
}

/** Shares one informer per (kind, options) among the components of a process. */
export interface InformerFactory {
  informer<T extends KubeObject>(type: ResourceType<T>, options?: InformerOptions): Informer<T>;
  /** Starts all that were asked for and waits until they have synced. */
  startAndSync(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Keys, not events: a key that is added while it is processed runs once more afterwards; one worker per key at a time;
 * failures are retried with exponential back-off (5 ms … 1000 s, as client-go's default rate limiter).
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
   * Records (and aggregates repeats of) an Event about `object`. Never throws and never blocks. `fieldPath` names a
   * part of the object: `spec.containers{web}`. `component` is the event's source where one recorder serves several.
   */
  event(
    object: KubeObject,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
    options?: { readonly fieldPath?: string; readonly component?: string },
  ): void;
  /** Writes out what is queued, for at most a few seconds, and ends. */
  stop(): Promise<void>;
}

export interface LeaderElector {
  /**
   * Runs `lead` while the lease is held; the signal aborts when it is lost. Resolves after `stop()` has released the
   * lease.
   */
  run(lead: (signal: AbortSignal) => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}
