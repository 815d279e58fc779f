/**
 * A map with at most `limit` entries, for caches. A new entry evicts the one that was set the longest time ago; reading
 * does not renew an entry. All operations take constant time.
 */
export class BoundedMap<K, V> {
  readonly #limit: number;
  readonly #entries = new Map<K, V>();
  /**
   * Position of the oldest entry. A new iterator would skip the gaps of all entries that were evicted before, which
   * takes microseconds in a map of thousands of entries.
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

  /** Makes the entry the newest one, also if the key is present. */
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
