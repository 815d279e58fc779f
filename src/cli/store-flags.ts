/** Flags of commands that connect to the store. */
import type { EtcdAccessOptions } from '../host/store/access.ts';
import type { StoreAccess } from '../host/store/administration.ts';
import { type Flag, type FlagValues, ROOT_FLAG, stringFlag } from './command.ts';

export const STORE_FLAGS: Readonly<Record<string, Flag>> = {
  endpoints: { type: 'string', value: 'URLS', help: 'comma-separated endpoints (default: those of this host)' },
  cacert: { type: 'string', value: 'FILE', help: 'CA of the store’s certificate' },
  cert: { type: 'string', value: 'FILE', help: 'client certificate' },
  key: { type: 'string', value: 'FILE', help: 'key of the client certificate' },
  user: { type: 'string', value: 'NAME:PASSWORD', help: 'user of a store with authentication enabled' },
  root: ROOT_FLAG,
};

export async function storeAccess(flags: FlagValues): Promise<StoreAccess> {
  const { etcdAccess } = await import('../host/store/access.ts');
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

/** Keeps the process alive during `work`, because the client's timers are unreferenced. */
export async function keepAliveDuring<T>(work: Promise<T>): Promise<T> {
  const hold = setInterval(() => {}, 1 << 30);
  try {
    return await work;
  } finally {
    clearInterval(hold);
  }
}
