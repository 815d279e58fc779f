/** Surveys how values are encrypted at rest, and rewrites values that are not encrypted with the current scheme. */
import { builtinKinds } from '../../api/registry/index.ts';
import type { Log } from '../../base/log.ts';
import { prefixEnd, type Store } from '../../store/port.ts';
import type { EncryptionSource } from './configuration.ts';
import { EncryptedStore } from './encrypted-store.ts';
import { createResourceOf } from './stored-resources.ts';

const ROOT = '/registry/';
const PAGE = 200;

export interface EncryptionScanDeps {
  /** The store without the decorator for encryption, so its values are as stored. */
  readonly store: Store;
  readonly source: EncryptionSource;
  readonly log: Log;
  nowMs(): number;
}

export interface StoredForm {
  /** Resource, for example `secrets` or `widgets.example.com`. */
  readonly resource: string;
  /** Scheme, such as `k8s:enc:aesgcm:v1:key1:`; '' for plain values. */
  readonly form: string;
  /** True if new values are written with the same scheme. */
  readonly current: boolean;
  readonly objects: number;
}

export interface EncryptionScan {
  readonly forms: readonly StoredForm[];
  /** Keys of values that no configured provider can decrypt. */
  readonly unreadable: readonly string[];
  /**
   * Number of rewritten values. A value that another writer changes meanwhile is not counted, because that write
   * encrypts it.
   */
  readonly rewritten: number;
}

/**
 * Reads all values that can be encrypted. With `rewrite`, rewrites values of another scheme. Rejects with StoreErrors.
 */
export async function scanEncryption(deps: EncryptionScanDeps, rewrite: boolean): Promise<EncryptionScan> {
  const resourceOf = createResourceOf();
  // Kinds that expire are not rewritten: without its lease, an object would never expire.
  const expiring = new Set(
    builtinKinds.filter(({ ttlSeconds }) => ttlSeconds !== undefined).map(({ group, plural }) => `${plural}.${group}`),
  );
  const store = new EncryptedStore({ ...deps, resourceOf });
  await store.checkPlugins();
  const counted = new Map<string, { -readonly [K in keyof StoredForm]: StoredForm[K] }>();
  const unreadable: string[] = [];
  let rewritten = 0;
  let start = ROOT;
  for (;;) {
    const page = await store.range(start, prefixEnd(ROOT), { limit: PAGE });
    for (const kv of page.kvs) {
      const kind = resourceOf(kv.key);
      if (kind === undefined || expiring.has(`${kind.resource}.${kind.group}`)) continue;
      if (kv.value.length === 0) {
        unreadable.push(kv.key);
        continue;
      }
      let current = !store.isStale(kv.key);
      if (rewrite && !current) {
        const { committed } = await store.commit({
          guards: [{ key: kv.key, modRevision: kv.modRevision }],
          puts: [{ key: kv.key, value: kv.value }],
        });
        if (committed) rewritten += 1;
        current = true;
      }
      const form = rewrite ? store.writes(kind) : store.formOf(kv.key);
      if (form === '' && current) continue;
      const resource = kind.group === '' ? kind.resource : `${kind.resource}.${kind.group}`;
      const entry = counted.get(`${resource} ${form}`) ?? { resource, form, current, objects: 0 };
      entry.objects += 1;
      counted.set(`${resource} ${form}`, entry);
    }
    const last = page.kvs.at(-1);
    if (!page.more || last === undefined) break;
    start = `${last.key}\0`;
  }
  return { forms: [...counted.values()], unreadable, rewritten };
}
