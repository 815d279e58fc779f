/**
 * A map with at most `limit` entries, for caches. If it is full, a new entry replaces the entry that was set first.
 * Reads do not renew an entry. All operations take constant time.
 */
export class BoundedMap<K, V> {
  readonly #limit: number;
  readonly #entries = new Map<K, V>();
  /**
   * Iterator at the oldest entry. It is kept, because a new iterator would skip the slots of all evicted entries, which
   * takes microseconds in a map with thousands of entries.
   */
  #oldest: MapIterator<K> | undefined;

  /** @param limit At least 1. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  /** Sets an entry and makes it the newest one, even if the key exists. */
  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#limit) return;
    this.#oldest ??= this.#entries.keys();
    const { done, value: oldest } = this.#oldest.next();
    if (done !== true) this.#entries.delete(oldest);
  }

  delete(key: K): boolean {
    return this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
    this.#oldest = undefined;
  }
}
