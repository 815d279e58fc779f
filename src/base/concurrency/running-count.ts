/** An item that can be in one `UnderWay` at a time. */
export interface Placed {
  /** Index of the item, -1 if it is in none. Set by `UnderWay` only. */
  place: number;
}

/**
 * An unordered set for many short-lived items. JavaScript's Set keeps deleted items alive: it rebuilds its table
 * repeatedly and each old table refers to the next one, so that once one of them is in the old generation, all
 * following tables and their items are retained until a full garbage collection. Here the slot of a deleted item is
 * cleared or reused immediately.
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

  /** Does nothing if the item is not in the set. */
  delete(item: T): void {
    if (!this.has(item)) return;
    const last = this.#items.pop();
    if (last !== undefined && last !== item) {
      this.#items[item.place] = last;
      last.place = item.place;
    }
    item.place = -1;
  }

  /** A snapshot of the items. */
  all(): T[] {
    return [...this.#items];
  }
}
