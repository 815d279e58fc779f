import { setImmediate as pause } from 'node:timers/promises';
import { ignore } from '../../base/errors.ts';
import { type KeyValue, prefixEnd, type Revision, type Store } from '../../store/port.ts';

const PAGE = 1000;

/**
 * Reads all keys below `prefix` in pages and passes each page to `take`. All pages have the revision that is returned.
 * The next page is requested before the current page is processed, so that both sides work in parallel. Throws
 * StoreError.
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
    // The rejection is handled where the page is awaited.
    next.catch(ignore('handled where the page is awaited'));
    // The pause lets the request be sent, which happens at the end of the turn.
    await pause();
    take(kvs);
    page = await next;
  }
}
