/**
 * Caches the joined items of unpaged lists, whole or by label selector, until an object of the kind changes. The size
 * is limited: the least recently used entries are evicted, and very large lists are never cached.
 */

import { keptBytes } from '../../pipeline/kept-bytes.ts';
import type { ServedKind } from '../../pipeline/kinds.ts';
import type { KindCache } from '../../watch-cache/kind-cache.ts';
import { listItems } from './list-items.ts';
import type { Snapshot } from './snapshot.ts';

const MAX_LIST_BYTES = 8 * 1024 * 1024;
const MAX_TOTAL_BYTES = 32 * 1024 * 1024;
/** Estimated overhead of an entry. */
const ENTRY_BYTES = 1024;
const MAX_KEY = 512;

interface Kept {
  readonly lastChange: number;
  readonly items: Buffer;
}

export class WholeLists {
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  /** Joined items of the list. Undefined if the items are too large to be cached. */
  items(
    kind: ServedKind,
    cache: KindCache,
    namespace: string | undefined,
    { objects, selection = '' }: Pick<Snapshot, 'objects' | 'selection'>,
  ): Buffer | undefined {
    const key = `${cache.options.prefix}${namespace ?? ''}?${selection}`;
    if (key.length > MAX_KEY) return undefined;
    const kept = this.#kept.get(key);
    if (kept !== undefined && kept.lastChange === cache.lastChange) {
      this.#kept.delete(key);
      this.#kept.set(key, kept);
      return kept.items;
    }
    if (kept !== undefined) this.#drop(key, kept);
    let length = 0;
    for (const object of objects) length += object.bytes.length + 1;
    if (length > MAX_LIST_BYTES) return undefined;
    const items = keptBytes([...listItems(kind, objects)]);
    this.#kept.set(key, { lastChange: cache.lastChange, items });
    this.#bytes += items.length + ENTRY_BYTES;
    for (const [oldest, each] of this.#kept) {
      if (this.#bytes <= MAX_TOTAL_BYTES || oldest === key) break;
      this.#drop(oldest, each);
    }
    return items;
  }

  #drop(key: string, kept: Kept): void {
    this.#kept.delete(key);
    this.#bytes -= kept.items.length + ENTRY_BYTES;
  }
}
