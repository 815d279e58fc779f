import type { JsonValue } from '../../../../src/api/meta/object.ts';

/** A seeded random generator (mulberry32) of choices and documents. */
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

  /** Between `min` and `max` items, each at most once, in random order. */
  some<T>(items: readonly T[], min: number, max: number): T[] {
    const rest = [...items];
    const chosen: T[] = [];
    for (let count = min + this.below(max - min + 1); count > 0 && rest.length > 0; count--) {
      chosen.push(...rest.splice(this.below(rest.length), 1));
    }
    return chosen;
  }

  value(depth: number, nulls: boolean): JsonValue {
    const kind = this.below(depth > 0 ? 6 : 4);
    if (kind === 0) return nulls && this.chance(0.5) ? null : this.below(3);
    if (kind === 1) return this.chance(0.5);
    if (kind < 4) return this.one(['x', 'y', 'z']);
    if (kind === 4) return Array.from({ length: this.below(3) }, () => this.value(depth - 1, nulls));
    return this.object(depth - 1, nulls);
  }

  object(depth: number, nulls: boolean): { [field: string]: JsonValue } {
    const object: { [field: string]: JsonValue } = {};
    for (const key of this.some(['a', 'b', 'c/d', 'e~f', 'constructor'], 0, 4)) object[key] = this.value(depth, nulls);
    return object;
  }
}
