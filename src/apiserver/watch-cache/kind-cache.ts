/** Objects of one kind in key order, their recent events and subscribers. */

import { ApiError } from '../../api/meta/status.ts';
import type { StoreKey } from '../../base/brand.ts';
import type { LabelSelector } from '../../base/selector.ts';
import { CachedObject, type FieldReaders, spliceRevision } from './cached-object.ts';
import { CacheEvent, EventBatch, EventWindow, WindowBudget } from './event-window.ts';
import { boundsOf, byKey, lowerBound } from './key-order.ts';
import { LabelIndex } from './label-index.ts';
import { type KindSubscriber, Subscribers } from './subscribers.ts';

export interface KindCacheOptions {
  /** Key prefix with a trailing slash: `/registry/pods/`. */
  readonly prefix: string;
  readonly namespaced: boolean;
  readonly fieldReaders: FieldReaders;
}

/** Maximum number of additions that are inserted individually. More additions are merged. */
const SPLICED = 8;

/** Copies a string, because a substring of a key would keep the whole key alive. Keys are ASCII. */
function ownCopy(name: string): string {
  return Buffer.from(name, 'latin1').toString('latin1');
}

/** Merges two lists in key order. */
function merged(left: readonly CachedObject[], right: readonly CachedObject[]): CachedObject[] {
  const all: CachedObject[] = [];
  let next = 0;
  for (const object of left) {
    for (let other = right[next]; other !== undefined && byKey(other, object) < 0; other = right[next]) {
      all.push(other);
      next += 1;
    }
    all.push(object);
  }
  for (; next < right.length; next++) all.push(right[next] as CachedObject);
  return all;
}

export class KindCache {
  readonly options: KindCacheOptions;
  /** Objects by namespace, then by name. A combined key for each object would cost memory and time. */
  readonly #objects = new Map<string, Map<string, CachedObject>>();
  #size = 0;
  /** Objects in key order, without the objects in `#added`. */
  #sorted: CachedObject[] = [];
  /** New objects, sorted by the next reader, so that many creates cost one merge. */
  #added: CachedObject[] = [];
  readonly #window: EventWindow;
  readonly #labels = new LabelIndex();
  readonly #subscribers: Subscribers;
  #lastChange = 0;
  /** Number of events received from the store. */
  received = 0;
  /** Namespace of the last key. The next keys of the same namespace share this string. */
  #namespace = '';
  #pending: CacheEvent[] = [];
  /** Objects that this server has written and whose events have not arrived yet, by `CachedObject.key`. */
  readonly #written = new Map<string, CachedObject>();
  /** Events up to this revision are already part of the loaded state. */
  #joined = 0;

  /** `budget`: shared by the windows of all kinds. */
  constructor(options: KindCacheOptions, budget = new WindowBudget()) {
    this.options = options;
    this.#window = new EventWindow(0, budget);
    this.#subscribers = new Subscribers(options.fieldReaders);
  }

  /** Revision of the last change of any object of the kind. While it is unchanged, the objects are unchanged. */
  get lastChange(): number {
    return this.#lastChange;
  }

  get size(): number {
    return this.#size;
  }

  get watchers(): number {
    return this.#subscribers.size;
  }

  get(namespace: string, name: string): CachedObject | undefined {
    return this.#objects.get(this.options.namespaced ? namespace : '')?.get(name);
  }

  #put(object: CachedObject): void {
    let names = this.#objects.get(object.namespace);
    if (names === undefined) {
      names = new Map();
      this.#objects.set(object.namespace, names);
    }
    const before = names.size;
    names.set(object.name, object);
    this.#size += names.size - before;
  }

  #remove({ namespace, name }: CachedObject): void {
    const names = this.#objects.get(namespace);
    if (names?.delete(name) !== true) return;
    this.#size -= 1;
    if (names.size === 0) this.#objects.delete(namespace);
  }

  /** Objects of a namespace, or of all namespaces, in key order. The array does not change afterwards. */
  list(namespace: string | undefined): readonly CachedObject[] {
    const sorted = this.#inOrder();
    if (namespace === undefined || !this.options.namespaced) return sorted.slice();
    return sorted.slice(...boundsOf(sorted, namespace));
  }

  /** Like `list`, without objects that the label index excludes. The caller must still match the remaining objects. */
  listSelected(namespace: string | undefined, selector: LabelSelector): readonly CachedObject[] {
    const scope = this.options.namespaced ? namespace : undefined;
    return this.#labels.candidates(selector, scope, this.#inOrder()) ?? this.list(namespace);
  }

  /** Number of objects in a namespace; for a cluster-scoped kind, of all objects. */
  count(namespace: string): number {
    if (!this.options.namespaced) return this.size;
    const [start, end] = boundsOf(this.#inOrder(), namespace);
    return end - start;
  }

  *[Symbol.iterator](): IterableIterator<CachedObject> {
    yield* this.#inOrder();
  }

  #inOrder(): CachedObject[] {
    const added = this.#added;
    if (added.length === 0) return this.#sorted;
    this.#added = [];
    if (added.length <= SPLICED) {
      for (const object of added)
        this.#sorted.splice(lowerBound(this.#sorted, object.namespace, object.name), 0, object);
    } else this.#sorted = merged(this.#sorted, added.sort(byKey));
    return this.#sorted;
  }

  /**
   * Splits the part of a store key after the prefix. Undefined if the key is not a key of this kind. Other clients of
   * the store may write such keys.
   */
  #split(key: StoreKey): { namespace: string; name: string } | undefined {
    const rest = key.slice(this.options.prefix.length);
    const slash = rest.indexOf('/');
    if (!this.options.namespaced) return slash < 0 ? { namespace: '', name: rest } : undefined;
    if (slash < 0) return undefined;
    // On load, objects arrive in key order, so the objects of a namespace can share the string of its name.
    if (!rest.startsWith(this.#namespace) || slash !== this.#namespace.length) this.#namespace = rest.slice(0, slash);
    return { namespace: this.#namespace, name: rest.slice(slash + 1) };
  }

  /**
   * Announces an object that this server has written. When its event arrives, this object is used, so that its bytes
   * exist only once.
   */
  expect(object: CachedObject): void {
    this.#written.set(object.key, object);
  }

  decode(key: StoreKey, value: Uint8Array, revision: number, createRevision: number): CachedObject | undefined {
    const parts = this.#split(key);
    if (parts === undefined) return undefined;
    const bytes = spliceRevision(value, revision, 'kept');
    return new CachedObject(parts.namespace, ownCopy(parts.name), bytes, revision, createRevision);
  }

  /** Replaces all objects by the store's state at `revision`. */
  load(objects: readonly CachedObject[], revision: number): void {
    this.#objects.clear();
    this.#size = 0;
    for (const object of objects) this.#put(object);
    this.#sorted = [...objects].sort(byKey);
    this.#added = [];
    this.#window.reset(revision);
    this.#labels.clear();
    this.#lastChange = revision;
    this.#pending = [];
    this.#written.clear();
    this.endWatches();
  }

  /** Ends all watches. Clients resume at their last resourceVersion. */
  endWatches(): void {
    this.#subscribers.reset();
  }

  /** Like `load`, for a kind added at run time. Events up to `revision` are ignored even if they arrive later. */
  join(objects: readonly CachedObject[], revision: number): void {
    this.load(objects, revision);
    this.#joined = revision;
  }

  applyPut(key: StoreKey, value: Uint8Array, revision: number, createRevision: number): void {
    this.received += 1;
    const object = this.#expected(key, revision) ?? this.decode(key, value, revision, createRevision);
    if (object === undefined || revision <= this.#joined) return;
    const previous = this.get(object.namespace, object.name);
    if (previous !== undefined && previous.revision >= revision) return;
    this.#put(object);
    // `list` returns copies, so `#sorted` may change in place.
    if (previous === undefined) this.#added.push(object);
    else {
      const sorted = this.#inOrder();
      sorted[lowerBound(sorted, object.namespace, object.name)] = object;
    }
    this.#record(new CacheEvent(previous === undefined ? 'ADDED' : 'MODIFIED', object, previous));
  }

  #expected(key: StoreKey, revision: number): CachedObject | undefined {
    if (this.#written.size === 0) return undefined;
    const name = key.slice(this.options.prefix.length);
    const object = this.#written.get(name);
    if (object === undefined || object.revision > revision) return undefined;
    this.#written.delete(name);
    return object.revision === revision ? object : undefined;
  }

  applyDelete(key: StoreKey, revision: number): void {
    this.received += 1;
    this.#expected(key, revision);
    const parts = this.#split(key);
    if (parts === undefined) return;
    const previous = this.get(parts.namespace, parts.name);
    if (previous === undefined || previous.revision >= revision || revision <= this.#joined) return;
    this.#remove(previous);
    const sorted = this.#inOrder();
    sorted.splice(lowerBound(sorted, parts.namespace, parts.name), 1);
    this.#record(new CacheEvent('DELETED', previous.atRevision(revision), previous));
  }

  #record(event: CacheEvent): void {
    event.previous?.superseded();
    this.#lastChange = event.revision;
    this.#window.push(event);
    this.#labels.note(event);
    this.#pending.push(event);
  }

  /** Delivers the events since the last flush to the subscribers. */
  flush(revision: number): void {
    if (this.#pending.length === 0) return;
    const batch = new EventBatch(this.#pending, revision);
    this.#pending = [];
    this.#subscribers.deliver(batch);
    for (const event of batch.events) event.release();
  }

  /**
   * Subscribes to events after `revision` (undefined: from now on). Missed events are delivered before this returns.
   * Throws 'Expired' if they are not available any more.
   */
  subscribe(subscriber: KindSubscriber, revision: number | undefined, now: number): () => void {
    if (revision !== undefined && revision < now) {
      const missed = this.#window.after(revision);
      if (missed === undefined) {
        throw new ApiError('Expired', `too old resource version: ${revision} (${this.#window.since})`);
      }
      if (missed.length > 0) subscriber.deliver(new EventBatch(missed, now));
    }
    this.#subscribers.add(subscriber);
    return () => this.unsubscribe(subscriber);
  }

  /** Removes a subscriber, for callers that do not keep the function that `subscribe` returns. */
  unsubscribe(subscriber: KindSubscriber): void {
    this.#subscribers.remove(subscriber);
  }
}
