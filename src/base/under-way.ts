/** Something that can be under way in one place at a time. */
export interface Placed {
  /** Where it stands; -1 when it is nowhere. Set by `UnderWay` alone. */
  place: number;
}

/**
 * What is under way and comes and goes by the thousand: a set without an order. JavaScript's own keeps alive what has
 * left it: it rebuilds its table again and again, each old table points to the next, and once one of them is old for
 * the garbage collector all that follow are taken for reachable, with whatever was in them, until the whole heap is
 * marked. Here a place is cleared, or taken by another, when its owner leaves.
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

  /** Does nothing for one that is not there. */
  delete(item: T): void {
    if (!this.has(item)) return;
    const last = this.#items.pop();
    if (last !== undefined && last !== item) {
      this.#items[item.place] = last;
      last.place = item.place;
    }
    item.place = -1;
  }

  /** Those that are there now, whatever becomes of them meanwhile. */
  all(): T[] {
    return [...this.#items];
  }
}
