/**
 * A map whose string keys can be walked in order: a list of sorted blocks. Looking up is two binary searches, inserting shifts
 * at most one block, and walking a range touches only its blocks; at a hundred thousand keys there are a few hundred blocks.
 */
const BLOCK = 256;

interface Block<V> {
  readonly keys: string[];
  readonly values: V[];
}

export class OrderedMap<V> {
  readonly #blocks: Block<V>[] = [];
  readonly #direct = new Map<string, V>();

  get size(): number {
    return this.#direct.size;
  }

  get(key: string): V | undefined {
    return this.#direct.get(key);
  }

  /** Adds a key that is not there yet, or replaces its value. */
  set(key: string, value: V): void {
    const before = this.#direct.size;
    const known = this.#direct.set(key, value).size === before;
    if (this.#blocks.length === 0) {
      this.#blocks.push({ keys: [key], values: [value] });
      return;
    }
    const at = this.#blockOf(key);
    const block = this.#blocks[at] as Block<V>;
    const position = lowerBound(block.keys, key);
    if (known) {
      block.values[position] = value;
      return;
    }
    // Keys that arrive in order fill blocks instead of leaving halves behind.
    if (block.keys.length >= BLOCK && position === block.keys.length && at === this.#blocks.length - 1) {
      this.#blocks.push({ keys: [key], values: [value] });
      return;
    }
    block.keys.splice(position, 0, key);
    block.values.splice(position, 0, value);
    if (block.keys.length > BLOCK) {
      const half = BLOCK >> 1;
      this.#blocks.splice(at + 1, 0, { keys: block.keys.splice(half), values: block.values.splice(half) });
    }
  }

  delete(key: string): boolean {
    if (!this.#direct.delete(key)) return false;
    const at = this.#blockOf(key);
    const block = this.#blocks[at] as Block<V>;
    const position = lowerBound(block.keys, key);
    block.keys.splice(position, 1);
    block.values.splice(position, 1);
    if (block.keys.length === 0) this.#blocks.splice(at, 1);
    return true;
  }

  /** Calls `visit` for every key in [`start`, `end`) in order, without `end` to the last key. Do not change the map meanwhile. */
  walk(start: string, end: string | undefined, visit: (value: V, key: string) => void): void {
    if (this.#blocks.length === 0) return;
    let at = this.#blockOf(start);
    let position = lowerBound((this.#blocks[at] as Block<V>).keys, start);
    for (; at < this.#blocks.length; at += 1, position = 0) {
      const block = this.#blocks[at] as Block<V>;
      for (; position < block.keys.length; position += 1) {
        const key = block.keys[position] as string;
        if (end !== undefined && key >= end) return;
        visit(block.values[position] as V, key);
      }
    }
  }

  /** The block that holds `key` or would. */
  #blockOf(key: string): number {
    let low = 0;
    let high = this.#blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (((this.#blocks[middle] as Block<V>).keys[0] as string) <= key) low = middle;
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
