/** An item of an `UnderWay` set. It can be in one set at a time. */
export interface Placed {
  /** Index of the item in its set; -1 if it is in no set. Only `UnderWay` sets it. */
  place: number;
}

/**
 * An unordered set for many short-lived items. JavaScript's Set can retain deleted items: it repeatedly rebuilds its
 * table, and each old table refers to the next one. As soon as one table is in the old generation, all later tables and
 * their items are retained until a full garbage collection. In this class, the slot of a deleted item is cleared or
 * reused immediately.
 */
export class UnderWay<T extends Placed> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(item: T): void {
    if (this.has(item)) return;
    item.place = this.#items.length;
    this.#items.push(item);
  }

  has(item: T): boolean {
    return this.#items[item.place] === item;
  }

  /** Removes an item. Does nothing if the item is not in the set. */
  delete(item: T): void {
    if (!this.has(item)) return;
    const last = this.#items.pop();
    if (last !== undefined && last !== item) {
      this.#items[item.place] = last;
      last.place = item.place;
    }
    item.place = -1;
  }

  /** Returns a copy of the items. */
  all(): T[] {
    return [...this.#items];
  }
}
