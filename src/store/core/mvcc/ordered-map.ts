/**
 * Map whose string keys can be visited in order: a list of sorted blocks. A lookup is two binary searches, an insertion
 * shifts at most one block, and visiting a range only touches its blocks; a hundred thousand keys take a few hundred
 * blocks. Each block has a summary, so that callers can skip the values of a whole block.
 */
const BLOCK = 256;

interface Block<V, S> {
  readonly keys: string[];
  readonly values: V[];
  /** Undefined if it must be recomputed on the next use. */
  summary: S | undefined;
}

export class OrderedMap<V, S> {
  readonly #summarize: (values: readonly V[]) => S;
  readonly #blocks: Block<V, S>[] = [];
  readonly #direct = new Map<string, V>();

  constructor(summarize: (values: readonly V[]) => S) {
    this.#summarize = summarize;
  }

  get size(): number {
    return this.#direct.size;
  }

  get(key: string): V | undefined {
    return this.#direct.get(key);
  }

  set(key: string, value: V): void {
    const before = this.#direct.size;
    const known = this.#direct.set(key, value).size === before;
    if (this.#blocks.length === 0) {
      this.#blocks.push({ keys: [key], values: [value], summary: undefined });
      return;
    }
    const at = this.#blockOf(key);
    const block = this.#blocks[at] as Block<V, S>;
    const position = lowerBound(block.keys, key);
    if (known) {
      block.summary = undefined;
      block.values[position] = value;
      return;
    }
    // Keys that arrive in order fill blocks completely instead of leaving half-full blocks.
    if (block.keys.length >= BLOCK && position === block.keys.length && at === this.#blocks.length - 1) {
      this.#blocks.push({ keys: [key], values: [value], summary: undefined });
      return;
    }
    block.summary = undefined;
    block.keys.splice(position, 0, key);
    block.values.splice(position, 0, value);
    if (block.keys.length > BLOCK) {
      const half = BLOCK >> 1;
      const second = { keys: block.keys.splice(half), values: block.values.splice(half), summary: undefined };
      this.#blocks.splice(at + 1, 0, second);
    }
  }

  delete(key: string): boolean {
    if (!this.#direct.delete(key)) return false;
    const at = this.#blockOf(key);
    const block = this.#blocks[at] as Block<V, S>;
    const position = lowerBound(block.keys, key);
    block.summary = undefined;
    block.keys.splice(position, 1);
    block.values.splice(position, 1);
    if (block.keys.length === 0) this.#blocks.splice(at, 1);
    return true;
  }

  /** Invalidates the summary of the block after the value of `key` was modified in place. */
  changed(key: string): void {
    const block = this.#blocks[this.#blockOf(key)];
    if (block !== undefined) block.summary = undefined;
  }

  /**
   * Calls `visit` for every key in [`start`, `end`) in order until it returns false. Without `end`, the range has no
   * upper bound. The map must not be modified meanwhile.
   */
  walk(start: string, end: string | undefined, visit: (value: V, key: string) => unknown): void {
    if (this.#blocks.length === 0) return;
    let at = this.#blockOf(start);
    let position = lowerBound((this.#blocks[at] as Block<V, S>).keys, start);
    for (; at < this.#blocks.length; at += 1, position = 0) {
      const block = this.#blocks[at] as Block<V, S>;
      for (; position < block.keys.length; position += 1) {
        const key = block.keys[position] as string;
        if (end !== undefined && key >= end) return;
        if (visit(block.values[position] as V, key) === false) return;
      }
    }
  }

  /**
   * Like `walk`, but first passes the summary of each block that lies completely in the range to `whole`. If `whole`
   * returns true, the keys of the block are not visited.
   */
  skim(start: string, end: string | undefined, whole: (summary: S) => boolean, visit: (value: V) => void): void {
    if (this.#blocks.length === 0) return;
    let at = this.#blockOf(start);
    let position = lowerBound((this.#blocks[at] as Block<V, S>).keys, start);
    for (; at < this.#blocks.length; at += 1, position = 0) {
      const block = this.#blocks[at] as Block<V, S>;
      const { keys, values } = block;
      const isInside = end === undefined || (keys.at(-1) as string) < end;
      if (position === 0 && isInside) {
        block.summary ??= this.#summarize(values);
        if (whole(block.summary)) continue;
      }
      const upTo = isInside || end === undefined ? keys.length : lowerBound(keys, end);
      for (; position < upTo; position += 1) visit(values[position] as V);
      if (!isInside) return;
    }
  }

  /** Index of the block that contains `key`, or into which `key` would be inserted. */
  #blockOf(key: string): number {
    let low = 0;
    let high = this.#blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (((this.#blocks[middle] as Block<V, S>).keys[0] as string) <= key) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** The first position whose key is not below `key`. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((keys[middle] as string) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
