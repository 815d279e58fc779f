/**
 * Cache of all objects below `/registry/`, fed by one watch on the store. Therefore all kinds have the same revision,
 * and one comparison shows whether the cache is up to date. Reads do not read objects from the store; they wait until
 * the cache has reached the revision that a linearizable read would have returned.
 */

import { totalmem } from 'node:os';
import { ApiError } from '../../api/meta/status.ts';
import { storeRevision, toStoreKey } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import {
  type KeyValue,
  prefixEnd,
  type Store,
  type StoreError,
  type StoreWatch,
  type WatchEvent,
} from '../../store/port.ts';
import type { CachedObject } from './cached-object.ts';
import { WindowBudget } from './event-window.ts';
import { KindCache, type KindCacheOptions } from './kind-cache.ts';
import { readPages } from './pages.ts';
import { ReadIndex } from './read-index.ts';

const ROOT = '/registry/';
const RELOAD_DELAY_MS = 500;
/** Time limit for a read that waits for the cache, as in upstream. */
const FRESHNESS_TIMEOUT_MS = 3_000;

/** Divisor: the event windows together may use this part (1/32) of the memory, within the limits below. */
const WINDOWS_SHARE = 32;
const MIN_WINDOWS_BYTES = 16 * 1024 * 1024;
const MAX_WINDOWS_BYTES = 128 * 1024 * 1024;

function windowBytes(): number {
  const share = Math.min(totalmem(), process.constrainedMemory() || totalmem()) / WINDOWS_SHARE;
  return Math.min(MAX_WINDOWS_BYTES, Math.max(MIN_WINDOWS_BYTES, share));
}

interface Waiter {
  readonly revision: number;
  resolve(): void;
}

export interface WatchCacheDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** True while no other server writes to the store. */
  readonly soleWriter: () => boolean;
}

export class WatchCache {
  readonly #deps: WatchCacheDeps;
  readonly #kinds = new Map<string, KindCache>();
  readonly #budget = new WindowBudget(windowBytes());
  readonly #readIndex: ReadIndex;
  readonly #onRevision = new Set<(revision: number) => void>();
  #revision = 0;
  #written = 0;
  #watch: StoreWatch | undefined;
  #waiters: Waiter[] = [];
  #loaded = false;
  #stopped = false;
  /** Number of complete loads of the cache since the start. */
  #epoch = 0;
  /** Kinds that were added at run time, pending until they are loaded. */
  readonly #complete = new Map<string, Promise<KindCache>>();
  /** Kinds that are being loaded, with the events that have arrived during the load. */
  readonly #joining = new Map<KindCache, WatchEvent[]>();

  /** First revision of the store's history, as far as this server has compacted it. */
  compactedTo = 0;

  constructor(deps: WatchCacheDeps, kinds: readonly KindCacheOptions[]) {
    this.#deps = deps;
    for (const options of kinds)
      this.#kinds.set(options.prefix.slice(ROOT.length, -1), new KindCache(options, this.#budget));
    this.#readIndex = new ReadIndex(async () => {
      const { revision } = await deps.store.get(`${ROOT}readindex`);
      return revision;
    });
  }

  /** Store revision up to which all kinds are loaded. */
  get revision(): number {
    return this.#revision;
  }

  /** True if the cache is loaded. False during a reload after events were missed. */
  get ready(): boolean {
    return this.#loaded;
  }

  /** Cache of a kind by its storage prefix (`pods`, `services/specs`). */
  kind(storagePrefix: string): KindCache {
    const kind = this.#kinds.get(storagePrefix);
    if (kind === undefined) throw new Error(`no such kind in the watch cache: ${storagePrefix}`);
    return kind;
  }

  kinds(): ReadonlyMap<string, KindCache> {
    return this.#kinds;
  }

  /**
   * Adds a kind. Resolves when it is complete: its objects are loaded and no change was missed. A second call for the
   * same prefix returns the same cache.
   */
  addKind(options: KindCacheOptions): Promise<KindCache> {
    const prefix = options.prefix.slice(ROOT.length, -1);
    const known = this.#complete.get(prefix);
    if (known !== undefined) return known;
    const complete = this.#join(prefix, new KindCache(options, this.#budget));
    this.#complete.set(prefix, complete);
    return complete;
  }

  async #join(prefix: string, kind: KindCache): Promise<KindCache> {
    this.#kinds.set(prefix, kind);
    for (;;) {
      try {
        await this.#loadKind(kind);
        return kind;
      } catch (error) {
        if (this.#stopped || this.#kinds.get(prefix) !== kind) throw error;
        this.#deps.log.warn('cannot load a kind from the store; retrying', { prefix, error: messageOf(error) });
        await new Promise<void>((resolve) => {
          this.#deps.clock.setTimer(RELOAD_DELAY_MS, resolve);
        });
      }
    }
  }

  /** Removes a kind and ends its watches. */
  removeKind(prefix: string): void {
    const kind = this.#kinds.get(prefix);
    this.#kinds.delete(prefix);
    this.#complete.delete(prefix);
    if (kind === undefined) return;
    this.#joining.delete(kind);
    kind.load([], this.#revision);
  }

  async #loadKind(kind: KindCache): Promise<void> {
    const { prefix } = kind.options;
    const epoch = this.#epoch;
    this.#joining.set(kind, []);
    const objects: CachedObject[] = [];
    const revision = await readPages(this.#deps.store, prefix, (kvs) => {
      for (const kv of kvs) {
        const object = this.#decoded(kind, kv);
        if (object !== undefined) objects.push(object);
      }
    });
    if (!this.#loaded || epoch !== this.#epoch) throw new Error('the watch cache was reloaded meanwhile');
    const missed = this.#joining.get(kind) ?? [];
    this.#joining.delete(kind);
    kind.join(objects, revision);
    for (const event of missed) this.#applyTo(kind, event);
    kind.flush(this.#revision);
  }

  #decoded(kind: KindCache, kv: KeyValue): CachedObject | undefined {
    try {
      return kind.decode(toStoreKey(kv.key), kv.value, kv.modRevision, kv.createRevision);
    } catch (error) {
      this.#deps.log.error('stored object cannot be decoded and is omitted', { key: kv.key, error: messageOf(error) });
      return undefined;
    }
  }

  /** Calls `callback` whenever the revision has increased, after delivery of the events up to it. */
  onRevision(callback: (revision: number) => void): () => void {
    this.#onRevision.add(callback);
    return () => this.#onRevision.delete(callback);
  }

  async start(): Promise<void> {
    await this.#load();
  }

  stop(): void {
    this.#stopped = true;
    this.#watch?.cancel();
    this.#watch = undefined;
    for (const kind of this.#kinds.values()) kind.load([], this.#revision);
  }

  #kindOfKey(key: string): KindCache | undefined {
    if (!key.startsWith(ROOT)) return undefined;
    const first = key.indexOf('/', ROOT.length);
    if (first < 0) return undefined;
    const plain = this.#kinds.get(key.slice(ROOT.length, first));
    if (plain !== undefined) return plain;
    const second = key.indexOf('/', first + 1);
    return second < 0 ? undefined : this.#kinds.get(key.slice(ROOT.length, second));
  }

  async #load(): Promise<void> {
    const objects = new Map<KindCache, CachedObject[]>();
    for (const kind of this.#kinds.values()) objects.set(kind, []);
    const revision = await readPages(this.#deps.store, ROOT, (kvs) => {
      for (const kv of kvs) {
        const kind = this.#kindOfKey(kv.key);
        if (kind === undefined) continue;
        const object = this.#decoded(kind, kv);
        if (object !== undefined) objects.get(kind)?.push(object);
      }
    });
    if (this.#stopped) return;
    this.#revision = revision;
    for (const [kind, each] of objects) kind.load(each, revision);
    this.#loaded = true;
    this.#epoch += 1;
    this.#watch = this.#deps.store.watch(ROOT, prefixEnd(ROOT), storeRevision(revision + 1), {
      events: (events, upTo) => this.#apply(events, upTo),
      progress: (upTo) => this.#advance(upTo),
      closed: (error) => this.#lost(error),
    });
    this.#wake();
  }

  #apply(events: readonly WatchEvent[], upTo: number): void {
    const touched = new Set<KindCache>();
    let last = 0;
    for (const event of events) {
      const kind = this.#kindOfKey(event.kv.key);
      if (kind === undefined) continue;
      // Subscribers of different kinds receive events in revision order, each revision as a whole.
      if (event.kv.modRevision !== last && (touched.size > 1 || (touched.size === 1 && !touched.has(kind)))) {
        this.#revision = Math.max(this.#revision, last);
        for (const each of touched) each.flush(this.#revision);
        touched.clear();
      }
      last = event.kv.modRevision;
      const joining = this.#joining.get(kind);
      if (joining !== undefined) {
        joining.push(event);
        continue;
      }
      this.#applyTo(kind, event);
      touched.add(kind);
    }
    if (upTo > this.#revision) this.#revision = upTo;
    for (const kind of touched) kind.flush(this.#revision);
    this.#wake();
  }

  #applyTo(kind: KindCache, { type, kv }: WatchEvent): void {
    try {
      if (type === 'put') kind.applyPut(toStoreKey(kv.key), kv.value, kv.modRevision, kv.createRevision);
      else kind.applyDelete(toStoreKey(kv.key), kv.modRevision);
    } catch (error) {
      this.#deps.log.error('stored object cannot be decoded and is omitted', { key: kv.key, error: messageOf(error) });
    }
  }

  #advance(upTo: number): void {
    if (upTo <= this.#revision) return;
    this.#revision = upTo;
    this.#wake();
  }

  #wake(): void {
    for (const callback of this.#onRevision) callback(this.#revision);
    if (this.#waiters.length === 0) return;
    const due = this.#waiters.filter((waiter) => waiter.revision <= this.#revision);
    if (due.length === 0) return;
    this.#waiters = this.#waiters.filter((waiter) => waiter.revision > this.#revision);
    for (const waiter of due) waiter.resolve();
  }

  #lost(error: StoreError): void {
    if (this.#stopped) return;
    this.#deps.log.warn('watch on the store ended; reloading', { error: error.message, code: error.code });
    this.#watch = undefined;
    this.#loaded = false;
    const reload = (): void => {
      if (this.#stopped) return;
      this.#load().catch((cause: unknown) => {
        this.#deps.log.warn('cannot load from the store; retrying', { error: messageOf(cause) });
        this.#deps.clock.setTimer(RELOAD_DELAY_MS, reload);
      });
    };
    reload();
  }

  /** Records a write of this process at `revision`. Later reads see this write. */
  noteWrite(revision: number): void {
    if (revision > this.#written) this.#written = revision;
  }

  /**
   * The cached object for a write of this process at `revision`. The response of the store and the watch event may
   * arrive in either order; the first creates the object and the second reuses it.
   */
  written(
    storagePrefix: string,
    place: Pick<CachedObject, 'namespace' | 'name'>,
    revision: number,
    make: () => CachedObject,
  ): CachedObject {
    const kind = this.#kinds.get(storagePrefix);
    if (kind === undefined) return make();
    if (this.#revision >= revision) {
      const known = kind.get(place.namespace, place.name);
      return known?.revision === revision ? known : make();
    }
    const object = make();
    kind.expect(object);
    return object;
  }

  /**
   * Brings the cache to the current revision. Returns undefined if the cache already has this revision, so that the hot
   * path need not wait.
   */
  freshen(): Promise<void> | undefined {
    if (!this.#loaded) return this.#freshenFromStore();
    if (!this.#deps.soleWriter()) return this.#freshenFromStore();
    return this.#revision >= this.#written ? undefined : this.waitFor(this.#written);
  }

  async #freshenFromStore(): Promise<void> {
    await this.waitFor(Math.max(this.#written, await this.#readIndex.current()));
  }

  /** Waits until the cache has reached `revision`. Throws 'Timeout' ("Too large resource version") after 3 s. */
  async waitFor(revision: number): Promise<void> {
    if (this.#loaded && this.#revision >= revision) return;
    this.#watch?.requestProgress();
    const reached = await new Promise<boolean>((resolve) => {
      const waiter: Waiter = {
        revision,
        resolve: () => {
          timer.cancel();
          again.cancel();
          resolve(true);
        },
      };
      // The first progress request may have been answered before the store reached the revision.
      const again = this.#deps.clock.setTimer(100, () => this.#watch?.requestProgress());
      const timer = this.#deps.clock.setTimer(FRESHNESS_TIMEOUT_MS, () => {
        this.#waiters = this.#waiters.filter((each) => each !== waiter);
        again.cancel();
        resolve(false);
      });
      this.#waiters.push(waiter);
    });
    if (!reached) {
      throw new ApiError('Timeout', `Too large resource version: ${revision}, current: ${this.#revision}`, {
        retryAfterSeconds: 1,
        causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      });
    }
  }
}
