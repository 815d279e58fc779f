import { type KubeObject, objectKey, type ResourceType } from '../api/meta/object.ts';
import { type ApiError, isApiError } from '../api/meta/status.ts';
import type { Clock, RandomSource } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { Backoff } from './backoff.ts';
import { isConnectionError } from './errors.ts';
import { IndexedStore } from './indexed-store.ts';
import { type LastKnown, withoutVersions } from './last-known.ts';
import type { Reachability } from './reachability.ts';
import { sleep } from './transport.ts';
import type { ChangeHandler, Informer, InformerOptions, ResourceClient, WatchEvent } from './types.ts';

export interface InformerDeps<T extends KubeObject> {
  readonly resource: ResourceClient<T>;
  readonly reachability: Reachability;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  /** Present: a copy may outlive the process. */
  readonly memory?: InformerMemory | undefined;
}

export interface InformerMemory {
  readonly lastKnown: LastKnown;
  /** Called at the first list of an informer. */
  onListed(): void;
  /** Resolves when the API server has been out of reach for so long that a host goes on without it. */
  away(signal: AbortSignal): Promise<void>;
}

/** A page of a list; parsing one must not hold up the event loop for long. */
const PAGE_SIZE = 500;
/**
 * A watch is renewed after 5 to 10 minutes, as client-go does, so that clients spread over servers again after one was
 * away.
 */
const WATCH_MIN_SECONDS = 300;
/** How long past its own time a watch may stay silent before the connection counts as dead. */
const WATCH_GRACE_MS = 30_000;
/**
 * A watch that ends sooner and without an event counts as a failure, or a confused server would be asked in a tight
 * loop.
 */
const SHORT_WATCH_MS = 1_000;
/** Between two lists of an optional kind that the server does not serve. */
const ABSENT_MS = 60_000;
/** Kinds that are not served or not permitted are reported after this time. */
const DEFINITIONS_MS = 60_000;

/** What went on since the store was last known to be complete. */
type Position =
  /**
   * List at any state the server has, but not older than what was seen; undefined: the history of that is gone, list
   * the newest state.
   */
  | { readonly next: 'list'; readonly notOlderThan: string | undefined }
  /** Not even the pages of a list lasted until its end: list the newest state at once. */
  | { readonly next: 'list-whole' }
  | { readonly next: 'watch'; readonly resourceVersion: string };

/**
 * List + watch of one kind. Source of the protocol: Kubernetes API concepts, "Efficient detection of changes"; of the
 * behaviour: client-go's Reflector.
 */
export class ReflectingInformer<T extends KubeObject> implements Informer<T> {
  readonly type: ResourceType<T>;
  readonly synced: Promise<void>;
  readonly listed: Promise<void>;
  readonly #options: InformerOptions;
  readonly #deps: InformerDeps<T>;
  readonly #store = new IndexedStore<T>();
  readonly #handlers = new Set<ChangeHandler<T>>();
  readonly #stopping = new AbortController();
  readonly #backoff: Backoff;
  #markSynced: () => void = () => {};
  #hasSynced = false;
  #markListed: () => void = () => {};
  #hasListed = false;
  #startedMs = 0;
  #running: Promise<void> | undefined;

  constructor(type: ResourceType<T>, options: InformerOptions, deps: InformerDeps<T>) {
    this.type = type;
    this.#options = options;
    this.#deps = deps;
    this.#backoff = new Backoff({ initialMs: 100, maxMs: 30_000, jitter: 0.5 }, deps.random);
    this.synced = new Promise((resolve) => {
      this.#markSynced = resolve;
    });
    this.listed = new Promise((resolve) => {
      this.#markListed = resolve;
    });
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  get hasListed(): boolean {
    return this.#hasListed;
  }

  start(): void {
    if (this.#stopping.signal.aborted) return;
    if (this.#running !== undefined) return;
    this.#startedMs = this.#deps.clock.monotonicMs();
    this.#running = this.#run();
    void this.#remember();
  }

  get(key: string): T | undefined {
    return this.#store.get(key);
  }

  list(namespace?: string): T[] {
    return this.#store.list(namespace);
  }

  byIndex(index: string, value: string): T[] {
    return this.#store.byIndex(index, value);
  }

  addIndex(name: string, valuesOf: (object: T) => readonly string[]): void {
    this.#store.addIndex(name, valuesOf);
  }

  onChange(handler: ChangeHandler<T>): () => void {
    for (const object of this.#store.list()) this.#call(() => handler.added?.(object));
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  get stopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the informer was stopped'));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let position: Position = { next: 'list', notOlderThan: '0' };
    while (!signal.aborted) {
      try {
        position = position.next === 'watch' ? await this.#watch(position.resourceVersion) : await this.#list(position);
      } catch (error) {
        if (signal.aborted) return;
        if (this.#options.optional === true && isApiError(error, 'NotFound')) {
          position = await this.#absent();
          continue;
        }
        const failed = position;
        position = this.#afterFailure(position, error);
        // An expired watch is replaced by a list at once; a failed list backs off, whatever the reason.
        if (failed.next !== 'watch' || !isGone(error)) await this.#pause(error);
      }
    }
  }

  async #absent(): Promise<Position> {
    const { signal } = this.#stopping;
    this.#replace([]);
    await sleep(this.#deps.clock, ABSENT_MS, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    return { next: 'list', notOlderThan: undefined };
  }

  async #list(position: Position): Promise<Position> {
    const { namespace, labelSelector, fieldSelector, metadataOnly } = this.#options;
    const selection = {
      signal: this.#stopping.signal,
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...(metadataOnly === undefined ? {} : { metadataOnly }),
    };
    let page = await this.#deps.resource.list({
      ...selection,
      // Pages that expired under way are not tried again in pages: they would expire again.
      ...(position.next === 'list' ? { limit: PAGE_SIZE } : {}),
      ...(position.next === 'list' && position.notOlderThan !== undefined
        ? { resourceVersion: position.notOlderThan }
        : {}),
    });
    const reduced = (items: readonly T[]): readonly T[] => items.map((item) => this.#reduced(item));
    let items = reduced(page.items);
    while (page.metadata.continue !== undefined && page.metadata.continue !== '') {
      if (this.#stopping.signal.aborted) return position;
      page = await this.#deps.resource.list({ ...selection, limit: PAGE_SIZE, continue: page.metadata.continue });
      items = items.concat(reduced(page.items));
    }
    if (this.#stopping.signal.aborted) return position;
    this.#replace(items);
    this.#backoff.reset();
    return { next: 'watch', resourceVersion: page.metadata.resourceVersion ?? '0' };
  }

  /** Without an API server in reach: what was known last, until the API server's own list replaces it. */
  async #remember(): Promise<void> {
    const { memory, log } = this.#deps;
    const { lastKnown } = this.#options;
    const { signal } = this.#stopping;
    if (memory === undefined || lastKnown === undefined) return;
    try {
      await memory.away(signal);
    } catch {
      return;
    }
    const isLate = (): boolean => this.#hasListed || signal.aborted;
    if (isLate()) return;
    const objects = await memory.lastKnown.read(lastKnown.set);
    if (objects === undefined || isLate()) return;
    log.info('no API server in reach: going on with the last known state', {
      set: lastKnown.set,
      objects: objects.length,
    });
    // Of this informer's type: its own writer made the set, and nothing else could.
    for (const object of objects) this.#upsert(object as T);
    this.#complete();
  }

  /** Writes the copy soon. What an earlier process knew stays until the API server has been heard. */
  #save(): void {
    const { lastKnown } = this.#options;
    if (lastKnown === undefined || lastKnown.readOnly === true || !this.#hasListed) return;
    const content = (): readonly KubeObject[] =>
      this.#store.list().flatMap((object) => {
        const kept = lastKnown.kept === undefined ? object : lastKnown.kept(object);
        return kept === undefined ? [] : [withoutVersions(kept)];
      });
    this.#deps.memory?.lastKnown.keep(lastKnown.set, content, lastKnown.pace ?? 'calm');
  }

  #complete(): void {
    if (this.#hasSynced) return;
    this.#hasSynced = true;
    this.#markSynced();
  }

  /** Makes the store equal to `items`, notifying handlers of each change, unobserved deletions included. */
  #replace(items: readonly T[]): void {
    this.#hasListed = true;
    this.#deps.memory?.onListed();
    const vanished = new Set(this.#store.keys());
    for (const object of items) {
      vanished.delete(objectKey(object));
      this.#upsert(object);
    }
    for (const key of vanished) this.#delete(key, undefined);
    this.#save();
    this.#complete();
    this.#markListed();
  }

  async #watch(from: string): Promise<Position> {
    const { clock, random } = this.#deps;
    const { signal } = this.#stopping;
    const timeoutSeconds = Math.floor(WATCH_MIN_SECONDS * (1 + random.random()));
    const silence = new AbortController();
    const guard = clock.setTimer(timeoutSeconds * 1000 + WATCH_GRACE_MS, () =>
      silence.abort(new Error('the watch outlived its time')),
    );
    const startedMs = clock.monotonicMs();
    let resourceVersion = from;
    let events = 0;
    try {
      const { reduce: _, optional: __, ...selection } = this.#options;
      const stream = this.#deps.resource.watch({
        ...selection,
        resourceVersion,
        allowBookmarks: true,
        timeoutSeconds,
        signal: AbortSignal.any([signal, silence.signal]),
      });
      for await (const event of stream) {
        if (signal.aborted) break;
        if (events++ === 0) this.#backoff.reset();
        this.#apply(event);
        resourceVersion = event.object.metadata?.resourceVersion ?? resourceVersion;
      }
    } catch (error) {
      if (isGone(error) || (this.#options.optional === true && isApiError(error, 'NotFound'))) throw error;
      if (signal.aborted) return { next: 'watch', resourceVersion };
      this.#explain('watch', error);
      await this.#pause(error);
      return { next: 'watch', resourceVersion };
    } finally {
      guard.cancel();
    }
    if (events === 0 && clock.monotonicMs() - startedMs < SHORT_WATCH_MS) {
      await sleep(clock, this.#backoff.next(), signal);
    }
    return { next: 'watch', resourceVersion };
  }

  #apply(event: WatchEvent<T>): void {
    switch (event.type) {
      case 'ADDED':
      case 'MODIFIED':
        this.#upsert(this.#reduced(event.object));
        this.#save();
        return;
      case 'DELETED':
        this.#delete(objectKey(event.object), event.object);
        this.#save();
        return;
      case 'BOOKMARK':
        return;
    }
  }

  #reduced(object: T): T {
    return this.#options.reduce === undefined ? object : (this.#options.reduce(object) as T);
  }

  #upsert(object: T): void {
    const old = this.#store.set(object);
    if (old === undefined) {
      this.#notify((handler) => handler.added?.(object));
    } else if (sameVersion(old, object)) {
      return;
    } else if (sameUid(old, object)) {
      this.#notify((handler) => handler.updated?.(object, old));
    } else {
      // Deleted and re-created while the watch was interrupted: two objects, not an update of one.
      this.#notify((handler) => handler.deleted?.(old));
      this.#notify((handler) => handler.added?.(object));
    }
  }

  #delete(key: string, last: T | undefined): void {
    const old = this.#store.delete(key);
    if (old !== undefined) this.#notify((handler) => handler.deleted?.(last ?? old));
  }

  #notify(call: (handler: ChangeHandler<T>) => void): void {
    for (const handler of this.#handlers) this.#call(() => call(handler));
  }

  /** A handler's bug must not end the watch for all others. */
  #call(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#deps.log.error('an informer handler failed', {
        kind: this.type.kind,
        error: messageOf(error),
        stack: error instanceof Error ? error.stack : undefined,
      });
    }
  }

  #afterFailure(position: Position, error: unknown): Position {
    this.#explain(position.next === 'watch' ? 'watch' : 'list', error);
    if (!isGone(error)) return position;
    return position.next === 'watch' ? { next: 'list', notOlderThan: undefined } : { next: 'list-whole' };
  }

  async #pause(error: unknown): Promise<void> {
    const { signal } = this.#stopping;
    try {
      if (isConnectionError(error)) await this.#deps.reachability.wait(signal);
      else await sleep(this.#deps.clock, this.#backoff.next(), signal);
    } catch (interrupted) {
      if (!signal.aborted) throw interrupted;
    }
  }

  /** A lost connection is logged by the transport; any other error is logged here. */
  #explain(what: 'list' | 'watch', error: unknown): void {
    const { clock, log } = this.#deps;
    const fields = { kind: this.type.kind, error: messageOf(error) };
    // A cluster that starts serves and permits some kinds only after controllers have created definitions and roles.
    const isRefused = isApiError(error, 'NotFound') || isApiError(error, 'Forbidden');
    const isEarly = isRefused && clock.monotonicMs() - this.#startedMs < DEFINITIONS_MS;
    if (isConnectionError(error) || isGone(error) || isEarly) log.v(3, `${what} interrupted`, fields);
    else log.warn(`${what} failed`, fields);
  }
}

/**
 * The version asked for is out of the server's history: too old (410), or, after a restore from a backup, newer than
 * all it has. Both are repaired by listing the newest state.
 */
function isGone(error: unknown): boolean {
  if (isApiError(error, 'Expired') || isApiError(error, 'Gone')) return true;
  return isApiError(error) && isTooLargeVersion(error);
}

function isTooLargeVersion(error: ApiError): boolean {
  return (error.details?.causes ?? []).some((cause) => cause.reason === 'ResourceVersionTooLarge');
}

function sameVersion(a: KubeObject, b: KubeObject): boolean {
  const version = a.metadata?.resourceVersion;
  return version !== undefined && version === b.metadata?.resourceVersion && sameUid(a, b);
}

function sameUid(a: KubeObject, b: KubeObject): boolean {
  return a.metadata?.uid === b.metadata?.uid;
}
