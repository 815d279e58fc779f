/**
 * Which parts of a document are so large that a walk over one of them is cut into pieces. The names of an object with
 * very many fields cost tens of milliseconds to list, whatever is done with them: a walk lists them once.
 */

/** Values, counted with all that are in them, that are worked on at once. */
const PIECE = 1000;
/** So much text counts as one value more. */
const TEXT = 1024;

/** Whether something of this weight is more than one piece. Only containers are. */
export const isHeavy = (weight: number): boolean => weight > PIECE;

export class Weigher {
  readonly #names = new Map<object, readonly string[]>();

  /** The object's own names, in their order. It is not changed while it is walked over. */
  names(object: object): readonly string[] {
    return this.#names.get(object) ?? this.#listed(object);
  }

  #listed(object: object): readonly string[] {
    const names = Object.keys(object);
    if (names.length > PIECE) this.#names.set(object, names);
    return names;
  }

  /** How many values it is, itself among them; not counted much beyond a piece. */
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

/** Tells every so many values that a piece is done. */
export class Pieces {
  #done = 0;

  /** Whether what has been done since the last piece, with this, is one. */
  isOver(weight = 1): boolean {
    this.#done += weight;
    if (this.#done < PIECE) return false;
    this.#done = 0;
    return true;
  }
}
