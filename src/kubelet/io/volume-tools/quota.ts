/**
 * Limits directory sizes by project quotas of ext4 and xfs. Source: quotactl(2), chattr(1), setquota(8), xfs_quota(8).
 */

import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { mountOf } from './mounts.ts';
import { run } from './run-tool.ts';

const BLOCK_BYTES = 1024;
/** First project id of volumes, above those that administrators usually assign. */
const FIRST_PROJECT = 0x4000_0000;
const PROJECTS = 0x3fff_ffff;

/** Returns false if the file system has no project quota or the host lacks the tools. */
export async function limitDirectory(directory: string, bytes: number, log: Log): Promise<boolean> {
  const mount = await mountOf(directory);
  const isOn = mount.options.some((option) => option === 'prjquota' || option === 'pquota');
  if (!isOn || !['ext4', 'xfs'].includes(mount.fsType)) return false;
  const project = String(projectOf(directory));
  const blocks = String(Math.ceil(bytes / BLOCK_BYTES));
  try {
    await run('chattr', ['-p', project, '+P', directory]);
    if (mount.fsType === 'xfs') {
      await run('xfs_quota', ['-x', '-c', `limit -p bhard=${blocks}k ${project}`, mount.target]);
    } else await run('setquota', ['-P', project, '0', blocks, '0', '0', mount.target]);
    return true;
  } catch (error) {
    log.warn('volume size not enforced', { directory, error: messageOf(error) });
    return false;
  }
}

/** Derived from the path by the FNV-1a hash, so that no table is needed. */
export function projectOf(directory: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(directory)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return FIRST_PROJECT + (hash % PROJECTS);
}
