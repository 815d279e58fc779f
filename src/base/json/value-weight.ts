/**
 * Estimates the size of parts of a document, so that work on a large document can be split into pieces. Each walk lists
 * the property names of an object only once, because that takes tens of milliseconds for an object with very many
 * fields.
 */

/** Number of values, including nested ones, that are processed at once. */
const PIECE = 1000;
/** Number of characters of a text that count as one additional value. */
const TEXT = 1024;

/** Whether a container is larger than one piece. */
export const isHeavy = (weight: number): boolean => weight > PIECE;

export class ValueWeights {
  readonly #names = new Map<object, readonly string[]>();

  /** Property names of an object in their order. The object must not change during the walk. */
  names(object: object): readonly string[] {
    return this.#names.get(object) ?? this.#listed(object);
  }

  #listed(object: object): readonly string[] {
    const names = Object.keys(object);
    if (names.length > PIECE) this.#names.set(object, names);
    return names;
  }

  /** Number of values in `value`, including nested ones. Counting stops when the result exceeds one piece. */
  weight(value: unknown): number {
    if (typeof value === 'string') return Math.min(PIECE, 1 + Math.floor(value.length / TEXT));
    if (typeof value !== 'object' || value === null) return 1;
    let sum = 1;
    if (Array.isArray(value)) {
      if (value.length > PIECE) return value.length;
      for (const item of value) {
        sum += this.weight(item);
        if (sum > PIECE) break;
      }
      return sum;
    }
    const names = this.names(value);
    if (names.length > PIECE) return names.length;
    for (const name of names) {
      sum += this.weight((value as Record<string, unknown>)[name]);
      if (sum > PIECE) break;
    }
    return sum;
  }
}

/** Counts the work that is done and reports the end of each piece. */
export class Pieces {
  #done = 0;

  /** Adds `weight` to the current piece. Returns true if the piece is complete; then a new piece begins. */
  isOver(weight = 1): boolean {
    this.#done += weight;
    if (this.#done < PIECE) return false;
    this.#done = 0;
    return true;
  }
}
