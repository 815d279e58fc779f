/**
 * Estimates the size of parts of a document, to split work on large ones into pieces. Listing the property names of an
 * object with very many fields takes tens of milliseconds, so a walk lists them once.
 */

/** Number of values, including nested ones, that are processed at once. */
const PIECE = 1000;
/** Length of text that counts as one additional value. */
const TEXT = 1024;

/** Whether a container is larger than one piece. */
export const isHeavy = (weight: number): boolean => weight > PIECE;

export class ValueWeights {
  readonly #names = new Map<object, readonly string[]>();

  /** Own property names in their order. The object must not change during the walk. */
  names(object: object): readonly string[] {
    return this.#names.get(object) ?? this.#listed(object);
  }

  #listed(object: object): readonly string[] {
    const names = Object.keys(object);
    if (names.length > PIECE) this.#names.set(object, names);
    return names;
  }

  /** Number of values including nested ones; counting stops shortly above one piece. */
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

/** Reports when a piece of work is done. */
export class Pieces {
  #done = 0;

  /** Whether the work since the last piece, including this, is at least one piece. */
  isOver(weight = 1): boolean {
    this.#done += weight;
    if (this.#done < PIECE) return false;
    this.#done = 0;
    return true;
  }
}
