/** Flags of the commands that talk to the store. */
import type { EtcdAccessOptions } from '../roles/etcd/access.ts';
import type { StoreAccess } from '../roles/etcd/administration.ts';
import { type Flag, type FlagValues, ROOT_FLAG, stringFlag } from './command.ts';

export const STORE_FLAGS: Readonly<Record<string, Flag>> = {
  endpoints: { type: 'string', value: 'URLS', help: 'other endpoints than those of this host, separated by commas' },
  cacert: { type: 'string', value: 'FILE', help: 'the authority of the store’s certificate' },
  cert: { type: 'string', value: 'FILE', help: 'client certificate' },
  key: { type: 'string', value: 'FILE', help: 'key of the client certificate' },
  user: { type: 'string', value: 'NAME:PASSWORD', help: 'who asks, where the store’s auth is on' },
  root: ROOT_FLAG,
};

export async function storeAccess(flags: FlagValues): Promise<StoreAccess> {
  const { etcdAccess } = await import('../roles/etcd/access.ts');
  return etcdAccess(storeAccessOptions(flags));
}

export function storeAccessOptions(flags: FlagValues): EtcdAccessOptions {
  return {
    root: stringFlag(flags, 'root'),
    endpoints: stringFlag(flags, 'endpoints'),
    cacert: stringFlag(flags, 'cacert'),
    cert: stringFlag(flags, 'cert'),
    key: stringFlag(flags, 'key'),
    user: stringFlag(flags, 'user'),
  };
}

/** The timers of a client do not keep a process; a command that waits for one has to. */
export async function kept<T>(work: Promise<T>): Promise<T> {
  const hold = setInterval(() => {}, 1 << 30);
  try {
    return await work;
  } finally {
    clearInterval(hold);
  }
}
