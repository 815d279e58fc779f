/** Store administration for commands: the component's operations with this host's files. */
import type { OnProgress } from '../../base/command-line/progress.ts';
import type { EtcdAdmin } from '../../store/administration/port.ts';
import * as restore from '../../store/administration/restore.ts';
import * as snapshots from '../../store/administration/snapshots.ts';
import { storeFiles } from './store-files.ts';

export { compactStore } from '../../store/administration/compact.ts';
export { clusterReport, type MemberReport, memberNamed } from '../../store/administration/members.ts';
export type { EtcdAdmin, EtcdMember, StoreAccess } from '../../store/administration/port.ts';

export const saveSnapshot = (
  admin: EtcdAdmin,
  target: snapshots.SnapshotTarget,
  nowMs: number,
  onProgress?: OnProgress,
) => snapshots.saveSnapshot(admin, target, storeFiles, nowMs, onProgress);

export const listSnapshots = (directory: string, { verify }: { readonly verify: boolean }) =>
  snapshots.listSnapshots(directory, { verify }, storeFiles);

export const pruneSnapshots = (directory: string, keep: number, newestFile: string) =>
  snapshots.pruneSnapshots(directory, keep, newestFile, storeFiles);

export const isUnchanged = (admin: EtcdAdmin, directory: string) => snapshots.isUnchanged(admin, directory, storeFiles);

export const snapshotStatus = (path: string) => snapshots.snapshotStatus(path, storeFiles);

export const restoreSnapshot = (
  path: string,
  target: restore.RestoreTarget,
  options: restore.RestoreOptions,
  onProgress?: OnProgress,
) => restore.restoreSnapshot(path, target, options, storeFiles, onProgress);

export const restoreFromEtcd = (admin: EtcdAdmin, target: restore.RestoreTarget, progress: OnProgress) =>
  restore.restoreFromEtcd(admin, target, storeFiles, progress);

export const pushSnapshot = (path: string, admin: EtcdAdmin, overwrite: boolean, progress: OnProgress) =>
  restore.pushSnapshot(path, admin, overwrite, storeFiles, progress);
