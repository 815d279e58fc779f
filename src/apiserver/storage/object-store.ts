/** Guarded writes of objects. Changes that must be consistent (an address and its service) are in one commit. */

import { apiVersionOf, type KubeObject } from '../../api/meta/object.ts';
import type { KindDefinition } from '../../api/registry/definition.ts';
import { type StoreKey, storeRevision, toStoreKey } from '../../base/brand.ts';
import type { Commit, CommitResult, Guard, KeyValue, Put, Store } from '../../store/port.ts';
import { runSteps } from '../server/event-loop.ts';
import { CachedObject, spliceRevision } from '../watch-cache/cached-object.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';
import { encodeObject, encodeSteps } from './encode.ts';
import type { ExpiryLeases } from './expiry-leases.ts';
import type { ObjectView } from './object-view.ts';
import type { StoreOperation } from './store-metrics.ts';

/** Additional guards and writes of the same commit. */
export interface Effects {
  readonly guards: readonly Guard[];
  readonly puts: readonly Put[];
  readonly deletes: readonly string[];
}

interface ObjectWrite {
  /** Undefined for a create. */
  readonly previous: CachedObject | undefined;
  readonly object: KubeObject;
  readonly effects: Effects;
  readonly large: boolean;
  readonly reserve: boolean;
}

export interface UpdateOptions {
  readonly effects?: Effects;
  /** True: the write yields to the event loop while encoding. */
  readonly large?: boolean;
  readonly reserve?: boolean;
}

export const NO_EFFECTS: Effects = { guards: [], puts: [], deletes: [] };

export type WriteResult =
  /** `revision`: revision of a removal. */
  | { readonly written: true; readonly object: CachedObject; readonly revision?: number }
  /** The object has changed; `current` is its present state. Undefined: the object does not exist. */
  | { readonly written: false; readonly current: CachedObject | undefined }
  /** A guard of the effects did not hold. */
  | { readonly written: false; readonly lostGuard: Guard };

export interface Place {
  readonly definition: KindDefinition;
  readonly namespace: string;
  readonly name: string;
  /** View of the kind. Set for kinds whose stored form differs from the served form. */
  readonly view?: ObjectView;
}

export const storeKey = ({ definition, namespace, name }: Place): StoreKey =>
  toStoreKey(
    definition.namespaced
      ? `/registry/${definition.storagePrefix}/${namespace}/${name}`
      : `/registry/${definition.storagePrefix}/${name}`,
  );

/** Observes the duration of store operations. */
export interface StoreWatcher {
  nowMs(): number;
  observe(definition: KindDefinition, operation: StoreOperation, seconds: number, isError: boolean): void;
}

export class ObjectStore {
  readonly #store: Store;
  readonly #cache: WatchCache;
  readonly #leases: ExpiryLeases;
  readonly #isStale: (key: StoreKey) => boolean;
  readonly #watcher: StoreWatcher;

  /**
   * `isStale` reports whether a stored value would be written differently now, for example encrypted with another key.
   */
  constructor(
    store: Store,
    cache: WatchCache,
    leases: ExpiryLeases,
    isStale: (key: StoreKey) => boolean,
    watcher: StoreWatcher,
  ) {
    this.#watcher = watcher;
    this.#isStale = isStale;
    this.#store = store;
    this.#cache = cache;
    this.#leases = leases;
  }

  /** Reads from the store instead of the cache. */
  async readStored(place: Place): Promise<CachedObject | undefined> {
    const beganMs = this.#watcher.nowMs();
    let kv: KeyValue | undefined;
    try {
      ({ kv } = await this.#store.get(storeKey(place)));
    } catch (error) {
      this.#note(place, 'get', beganMs, 'failed');
      throw error;
    }
    this.#note(place, 'get', beganMs, 'succeeded');
    return kv === undefined ? undefined : cached(place, kv);
  }

  /** Reports whether writing the unchanged object would change its stored form. */
  isStale(place: Place): boolean {
    return this.#isStale(storeKey(place));
  }

  /** Creates an object. With `large`, yields to the event loop while encoding. */
  create(place: Place, object: KubeObject, effects: Effects = NO_EFFECTS, large = false): Promise<WriteResult> {
    return this.#put(place, { previous: undefined, object, effects, large, reserve: false });
  }

  update(
    place: Place,
    previous: CachedObject,
    object: KubeObject,
    { effects = NO_EFFECTS, large = false, reserve = false }: UpdateOptions = {},
  ): Promise<WriteResult> {
    return this.#put(place, { previous, object, effects, large, reserve });
  }

  /** Updates all objects or, if one has changed since `previous`, none. Only for kinds without a view. */
  async updateAll(
    changes: readonly { readonly place: Place; readonly previous: CachedObject; readonly object: KubeObject }[],
  ): Promise<readonly CachedObject[] | undefined> {
    const puts = changes.map(({ place, object }) => {
      const { definition } = place;
      return {
        key: storeKey(place),
        value: encodeObject({ apiVersion: apiVersionOf(definition), kind: definition.kind }, object),
      };
    });
    const guards = changes.map(({ previous }, index) => ({
      key: puts[index]?.key ?? '',
      modRevision: storeRevision(previous.revision),
    }));
    const result = await this.#store.commit({ guards, puts });
    if (!result.committed) return undefined;
    const { revision } = result;
    this.#cache.noteWrite(revision);
    return changes.map(({ place, previous }, index) => {
      const bytes = spliceRevision(puts[index]?.value ?? Buffer.alloc(0), revision);
      return new CachedObject(placeNamespace(place), place.name, bytes, revision, previous.createRevision);
    });
  }

  /** Removes the object if it is unchanged since `previous`. `object` of the result is its last state. */
  async remove(place: Place, previous: CachedObject, effects: Effects = NO_EFFECTS): Promise<WriteResult> {
    const key = storeKey(place);
    const revision = await this.#commit(place, 'delete', {
      guards: [{ key, modRevision: storeRevision(previous.revision) }, ...effects.guards],
      puts: effects.puts,
      deletes: [key, ...effects.deletes],
      // Writes that accompany a removal release its values, so they may use the reserve.
      ...(effects.puts.length > 0 ? { reserve: true } : {}),
    });
    return typeof revision === 'number' ? { written: true, object: previous, revision } : revision;
  }

  async #put(place: Place, { previous, object, effects, large, reserve }: ObjectWrite): Promise<WriteResult> {
    const { definition, view } = place;
    const key = storeKey(place);
    const type = { apiVersion: apiVersionOf(definition), kind: definition.kind };
    const converted = view?.toStorage(object);
    const stored = converted instanceof Promise ? await converted : converted;
    const storedType = stored === undefined ? type : { ...type, apiVersion: stored.apiVersion ?? type.apiVersion };
    const value = large
      ? await runSteps(encodeSteps(storedType, stored ?? object))
      : encodeObject(storedType, stored ?? object);
    const isHeartbeat = previous !== undefined && definition.isHeartbeat?.(object, previous.peek()) === true;
    const lease = definition.ttlSeconds === undefined ? undefined : await this.#leases.lease(definition.ttlSeconds);
    const revision = await this.#commit(place, previous === undefined ? 'create' : 'update', {
      guards: [{ key, modRevision: previous === undefined ? 0 : storeRevision(previous.revision) }, ...effects.guards],
      puts: [{ key, value, ...(lease === undefined ? {} : { lease }) }, ...effects.puts],
      deletes: effects.deletes,
      ...(isHeartbeat ? { durability: 'heartbeat' } : {}),
      ...(reserve ? { reserve } : {}),
    });
    if (typeof revision !== 'number') return revision;
    const namespace = placeNamespace(place);
    const made = (bytes: Buffer, current?: KubeObject): CachedObject =>
      new CachedObject(namespace, place.name, bytes, revision, previous?.createRevision ?? revision, current);
    const written = this.#cache.written(definition.storagePrefix, { namespace, name: place.name }, revision, () =>
      made(spliceRevision(value, revision, 'kept'), stored ?? object),
    );
    if (view === undefined || stored === undefined || stored === object) return { written: true, object: written };
    // The response has the requested version, with the defaults of the storage version, like later reads.
    try {
      return { written: true, object: await view.of(written) };
    } catch {
      // The conversion webhook failed after the commit. The response contains the object as sent; reads report the
      // failure.
      const answer = encodeObject({ ...type, apiVersion: object.apiVersion ?? type.apiVersion }, object);
      return { written: true, object: made(spliceRevision(answer, revision)) };
    }
  }

  #note({ definition }: Place, operation: StoreOperation, beganMs: number, outcome: 'failed' | 'succeeded'): void {
    this.#watcher.observe(definition, operation, (this.#watcher.nowMs() - beganMs) / 1000, outcome === 'failed');
  }

  async #commit(
    place: Place,
    operation: StoreOperation,
    commit: Commit,
  ): Promise<number | Exclude<WriteResult, { written: true }>> {
    const { durability } = place.definition;
    const beganMs = this.#watcher.nowMs();
    let result: CommitResult;
    try {
      result = await this.#store.commit({ ...(durability === undefined ? {} : { durability }), ...commit });
    } catch (error) {
      this.#note(place, operation, beganMs, 'failed');
      throw error;
    }
    this.#note(place, operation, beganMs, 'succeeded');
    if (result.committed) {
      this.#cache.noteWrite(result.revision);
      return result.revision;
    }
    const [own, ...others] = result.current;
    const [ownGuard, ...otherGuards] = commit.guards;
    if ((own?.modRevision ?? 0) !== (ownGuard?.modRevision ?? 0)) {
      return { written: false, current: own === undefined ? undefined : cached(place, own) };
    }
    const lost = otherGuards.find((guard, index) => (others[index]?.modRevision ?? 0) !== guard.modRevision);
    if (lost !== undefined) return { written: false, lostGuard: lost };
    return { written: false, current: own === undefined ? undefined : cached(place, own) };
  }
}

function placeNamespace(place: Place): string {
  return place.definition.namespaced ? place.namespace : '';
}

function cached(place: Place, kv: KeyValue): CachedObject {
  const bytes = spliceRevision(kv.value, kv.modRevision);
  return new CachedObject(placeNamespace(place), place.name, bytes, kv.modRevision, kv.createRevision);
}
