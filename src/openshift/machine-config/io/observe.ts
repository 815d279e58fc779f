/** Inspects the file system entry at a path. */

import { CodedError } from '../../../base/errors.ts';
import { sha256Hex } from '../../../wire/digest.ts';
import type { Observed } from '../core/host-files/port.ts';
import type { Disk } from './disk.ts';

/**
 * Size limit for computing the digest of a file. It exceeds every file of a config, so a larger file always differs.
 */
export const MAX_KEPT_BYTES = 64 * 1024 * 1024;

export async function observePath(disk: Disk, path: string): Promise<Observed> {
  const stat = await disk.stat(path);
  if (stat === undefined) return { kind: 'absent' };
  if (stat.kind === 'link') return { kind: 'link', target: stat.target };
  if (stat.kind !== 'file') return { kind: stat.kind };
  const { size, mode, uid, gid } = stat;
  if (size > MAX_KEPT_BYTES) return { kind: 'file', sha256: 'too large', size, mode, uid, gid };
  try {
    return { kind: 'file', sha256: sha256Hex(await disk.read(path, MAX_KEPT_BYTES)), size, mode, uid, gid };
  } catch (error) {
    // The file has grown since its size was read.
    if (error instanceof CodedError && error.code === 'too-large')
      return { kind: 'file', sha256: 'too large', size, mode, uid, gid };
    throw error;
  }
}
