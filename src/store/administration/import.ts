/** Reads all keys and leases of another etcd through its API, at one revision and in pages. */

import { CodedError } from '../../base/errors.ts';
import type { PutEvent } from '../core/messages/event.ts';
import type { Foreign } from '../membership/offline.ts';
import type { EtcdAdmin } from './port.ts';

const PAGE = 2000;
/** Maximum number of keys whose values are read or written in one request. */
const VALUES = 32;

interface Place {
  readonly key: string;
  readonly modRevision: number;
}

/** Keys and leases at the store's current revision. Throws CodedErrors of the store. */
export async function foreignContent(admin: EtcdAdmin, progress: (done: number, of: number) => void): Promise<Foreign> {
  const { revision, places } = await listKeys(admin);
  const leases = new Map(
    (await admin.leases()).map(({ id, grantedSeconds, remainingSeconds }) => [
      id,
      { id, ttlSeconds: grantedSeconds, remainingSeconds },
    ]),
  );
  // The store has a row per revision, so keys must be in the order of their revisions.
  places.sort((left, right) => left.modRevision - right.modRevision);
  async function* keys(): AsyncGenerator<PutEvent> {
    for (let at = 0; at < places.length; at += VALUES) {
      const wanted = places.slice(at, at + VALUES).map(({ key }) => key);
      for (const kv of await admin.getAll(wanted, revision)) {
        // Keys of a lease that has expired in the meantime are skipped, because the other store deletes them too.
        if (kv.lease === 0n || leases.has(kv.lease)) yield kv;
      }
      progress(Math.min(at + VALUES, places.length), places.length);
    }
  }
  return { revision, leases: [...leases.values()], keys: keys() };
}

async function listKeys(admin: EtcdAdmin): Promise<{ readonly revision: number; readonly places: Place[] }> {
  const places: Place[] = [];
  let revision = 0;
  for (let key = '\0'; ; ) {
    const page = await admin.range({ key, end: '\0', limit: PAGE, revision, keysOnly: true });
    revision ||= page.revision;
    for (const { key: name, modRevision } of page.kvs) places.push({ key: name, modRevision });
    const last = page.kvs.at(-1);
    if (!page.more || last === undefined) break;
    key = `${last.key}\0`;
  }
  if (revision === 0) throw new CodedError('refused', 'the store returned no revision');
  return { revision, places };
}
