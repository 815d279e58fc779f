/** A small seeded generator (mulberry32) and choices on top of it. */
export class Choices {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  random(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }

  below(limit: number): number {
    return Math.floor(this.random() * limit);
  }

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  one<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error('nothing to choose from');
    return item;
  }

  /** Between `min` and `max` items, each at most once. */
  some<T>(items: readonly T[], min: number, max: number): T[] {
    const rest = [...items];
    const chosen: T[] = [];
    for (let count = min + this.below(max - min + 1); count > 0 && rest.length > 0; count--) {
      chosen.push(...rest.splice(this.below(rest.length), 1));
    }
    return chosen;
  }
}
