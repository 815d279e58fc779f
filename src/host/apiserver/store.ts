/** The API server's client of its store; its certificate is reloaded from the flags' files. */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ApiValues } from '../../apiserver/config/index.ts';
import { type Decoded, decodeJson, object, optional, text as string } from '../../base/decode.ts';
import type { Log } from '../../base/log.ts';
import { createEtcdStore } from '../../store/client/etcd-store.ts';
import type { Store } from '../../store/port.ts';
import { type OpenSecret, readReferenced, readSecret } from '../config/files.ts';
import { followFile } from '../config/followed-file.ts';
import { systemClock as clock } from '../process/process.ts';
import { isStoreUrl } from '../store/store-url.ts';

const MATERIALS = object({ ca: optional(string), cert: optional(string), key: optional(string) });
type Materials = Decoded<typeof MATERIALS>;

const FLAGS = { ca: 'etcd-cafile', cert: 'etcd-certfile', key: 'etcd-keyfile' } as const;

/**
 * A client of the store that the flags name. Throws CodedErrors and ApiUsageProblems that name the flag, the field or
 * the file.
 */
export async function openStore(
  values: ApiValues,
  referredToBy: string,
  log: Log,
  onOpenSecret?: OpenSecret,
): Promise<Store> {
  const endpoints = values.list('etcd-servers');
  if (endpoints.length === 0) values.refuse('etcd-servers', 'is missing; give the store as https://HOST:2379');
  for (const endpoint of endpoints) {
    if (!isStoreUrl(endpoint))
      values.refuse('etcd-servers', `"${endpoint}" is not a URL such as https://10.0.0.5:2379`);
  }
  const files = Object.entries(FLAGS).flatMap(([what, flag]) => {
    const path = values.file(flag);
    return path === undefined ? [] : [{ what: what as keyof typeof FLAGS, path }];
  });
  const readAll = async (read: (path: string, what: keyof typeof FLAGS) => Promise<string>): Promise<string> => {
    const entries = files.map(async ({ what, path }) => [what, await read(path, what)] as const);
    return JSON.stringify(Object.fromEntries(await Promise.all(entries)));
  };
  const followed = await followFile(files.map(({ path }) => path).join(', '), {
    what: 'store certificate',
    log,
    first: () =>
      readAll((path, what) =>
        what === 'key' ? readSecret(path, referredToBy, onOpenSecret) : readReferenced(path, referredToBy),
      ),
    read: () => readAll((path) => readFile(path, 'utf8')),
    files: files.map(({ path }) => path),
    parse: materialsOf,
  });
  const store = createEtcdStore({ endpoints, materials: () => followed.current, log: log.named('store'), clock });
  const close = store.close.bind(store);
  return Object.assign(store, {
    close: async (): Promise<void> => {
      followed.stop();
      await close();
    },
  });
}

/**
 * Parses the certificates and checks them. Throws an Error if certificate and key do not match, which is possible for a
 * moment during a renewal.
 */
function materialsOf(text: string): Materials {
  const materials = decodeJson(MATERIALS, text, 'store certificates');
  const { cert, key } = materials;
  if (cert !== undefined && key !== undefined && !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    throw new Error('the key does not belong to the certificate');
  return materials;
}
