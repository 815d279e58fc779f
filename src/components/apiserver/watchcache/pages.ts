import { setImmediate as pause } from 'node:timers/promises';
import { type KeyValue, prefixEnd, type Revision, type Store } from '../../../core/mvcc/port.ts';

const PAGE = 1000;

/**
 * Hands everything below `prefix` to `take` in pages, as it was at one revision, which it returns. The store is asked
 * for the next page before one is taken over, so that both are at work. Throws StoreError.
 */
export async function readPages(
  store: Store,
  prefix: string,
  take: (kvs: readonly KeyValue[]) => void,
): Promise<Revision> {
  const end = prefixEnd(prefix);
  let page = await store.range(prefix, end, { limit: PAGE });
  const { revision } = page;
  for (;;) {
    const { kvs, more } = page;
    const last = kvs.at(-1);
    if (!more || last === undefined) {
      take(kvs);
      return revision;
    }
    const next = store.range(`${last.key}\0`, end, { limit: PAGE, revision });
    // A rejection is handled where the page is awaited.
    next.catch(() => {});
    // Requests leave at the end of a turn.
    await pause();
    take(kvs);
    page = await next;
  }
}
