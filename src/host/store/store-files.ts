/** Implements the access to snapshot files and data directories with `store/disk`. */
import { silentLog } from '../../base/log.ts';
import type { StoreFiles } from '../../store/administration/port.ts';
import {
  checkKind,
  createSqliteLog,
  lastIntactRevision,
  snapshotPosition,
  summarizeSnapshot,
} from '../../store/disk/index.ts';
import { openAssets } from '../process/assets.ts';

const nativeBinding = async (): Promise<string> => (await openAssets()).sqliteAddon;

export const storeFiles: StoreFiles = {
  openLog: async (directory, { isCopy = false }: { readonly isCopy?: boolean } = {}) =>
    createSqliteLog({ directory, nativeBinding: await nativeBinding(), isCopy, log: silentLog }),
  checkKind,
  positionOf: async (path) => snapshotPosition(path, await nativeBinding()),
  summarize: async (path) => summarizeSnapshot(path, await nativeBinding()),
  lastIntactRevision: async (path) => lastIntactRevision(path, await nativeBinding()),
};
