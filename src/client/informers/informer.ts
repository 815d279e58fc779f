import { type KubeObject, objectKey, type ResourceType } from '../../api/meta/object.ts';
import { type ApiError, isApiError } from '../../api/meta/status.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import { sleep } from '../../base/time/sleep.ts';
import { Backoff } from '../backoff.ts';
import { isConnectionError } from '../errors.ts';
import type { Reachability } from '../reachability.ts';
import type { ChangeHandler, Informer, InformerOptions, ResourceClient, WatchEvent } from '../types.ts';
import { IndexedStore } from './indexed-store.ts';
import { type LastKnown, withoutVersions } from './last-known.ts';

export interface InformerDeps<T extends KubeObject> {
  readonly resource: ResourceClient<T>;
  readonly reachability: Reachability;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  /** Storage for the last known objects; undefined if the objects are not stored. */
  readonly memory?: InformerMemory | undefined;
}

export interface InformerMemory {
  readonly lastKnown: LastKnown;
  /** Called when an informer has received its first list. */
  onListed(): void;
  /**
   * Resolves if the API server has been unreachable for so long that the host must continue with the last known
   * objects.
   */
  away(signal: AbortSignal): Promise<void>;
}

/** Number of objects per page of a list. It is limited, because the parsing of a page blocks the event loop. */
const PAGE_SIZE = 500;
/**
 * Minimum duration of a watch; the maximum is twice as long. As in client-go, watches are renewed, so that clients are
 * distributed over all servers again after one was down.
 */
const WATCH_MIN_SECONDS = 300;
/** Time after the time-out of a watch at which the watch counts as broken if the server has not ended it. */
const WATCH_GRACE_MS = 30_000;
/**
 * Minimum duration of a watch without events. A shorter watch counts as a failure, so that a faulty server does not
 * cause a tight loop.
 */
const SHORT_WATCH_MS = 1_000;
/** Interval between lists of an optional kind that the server does not serve. */
const ABSENT_MS = 60_000;
/** Time after the start in which lists that are rejected with NotFound or Forbidden are not logged as errors. */
const DEFINITIONS_MS = 60_000;

/** Next operation of the informer. */
type Position =
  /**
   * List any state that is not older than `notOlderThan`. Undefined means the newest state, because the history after
   * the last version is lost.
   */
  | { readonly next: 'list'; readonly notOlderThan: string | undefined }
  /** List the newest state in one request, because the continue token of a list with pages has expired. */
  | { readonly next: 'list-whole' }
  | { readonly next: 'watch'; readonly resourceVersion: string };

/**
 * Informer of one kind by list and watch. Sources: Kubernetes API concepts, "Efficient detection of changes"
 * (protocol); client-go's Reflector (behaviour).
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
        // After an expired watch, list immediately. After any other failure, back off.
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
      // If pages have expired, the list is repeated without pages, because they would expire again.
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

  /**
   * If no API server is reachable, provides the last known objects until the first list of the API server replaces
   * them.
   */
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
    log.info('API server unreachable; using the last known state', {
      set: lastKnown.set,
      objects: objects.length,
    });
    // The cast is safe, because an informer of the same type has written the set.
    for (const object of objects) this.#upsert(object as T);
    this.#complete();
  }

  /**
   * Schedules a write of the objects to the storage. Until the API server has responded, the objects of an earlier
   * process are kept.
   */
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

  /**
   * Replaces the contents of the store. Handlers are notified of each change, including deletions during an
   * interruption.
   */
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
      silence.abort(new Error('the watch did not end at its time-out')),
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
      // The object was deleted and created again during an interruption of the watch, so handlers receive both events.
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

  /** Calls a handler. An error in the handler must not end the watch, because other handlers use it too. */
  #call(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#deps.log.error('informer handler failed', {
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

  /** Logs an error of a list or watch. The transport logs lost connections. */
  #explain(what: 'list' | 'watch', error: unknown): void {
    const { clock, log } = this.#deps;
    const fields = { kind: this.type.kind, error: messageOf(error) };
    // While a cluster starts, some kinds are served and permitted only after controllers have created definitions and
    // roles.
    const isRefused = isApiError(error, 'NotFound') || isApiError(error, 'Forbidden');
    const isEarly = isRefused && clock.monotonicMs() - this.#startedMs < DEFINITIONS_MS;
    if (isConnectionError(error) || isGone(error) || isEarly) log.v(3, `${what} interrupted`, fields);
    else log.warn(`${what} failed`, fields);
  }
}

/**
 * Whether the requested version is not in the server's history: it is too old (410), or newer than all versions after a
 * restore from a backup. In both cases, the newest state must be listed.
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
