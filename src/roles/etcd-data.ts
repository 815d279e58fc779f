/** What lies in a data directory of the store, for whoever works on it while the store does not run. */
import { join } from 'node:path';
import { silentLog } from '../base/log.ts';
import type { StoreLog } from '../components/etcd/port.ts';
import { createSqliteLog } from '../io/sqlite/index.ts';
import { openAssets } from './assets.ts';

/** While it is there, the next start makes of the member a cluster of its own. */
export function recoverMark(dataDirectory: string): string {
  return join(dataDirectory, 'recover-alone');
}

/** The log in `directory`, not opened yet. `isCopy`: of a store's file, which is all there is. */
export async function dataLog(directory: string, isCopy = false): Promise<StoreLog> {
  const { sqliteAddon } = await openAssets();
  return createSqliteLog({ directory, nativeBinding: sqliteAddon, isCopy, log: silentLog });
}
