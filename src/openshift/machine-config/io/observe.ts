/** Inspects the entry at a path and compares it with the recorded one. */

import { CodedError } from '../../../base/errors.ts';
import { sha256Hex } from '../../../wire/digest.ts';
import type { Disk } from './disk.ts';

/** More than any file of a config. A larger file always differs. */
export const MAX_KEPT_BYTES = 64 * 1024 * 1024;

export type Recorded =
  | {
      readonly kind: 'file';
      readonly sha256: string;
      readonly size: number;
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
    }
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'absent' };

export type Observed = Recorded | { readonly kind: 'directory' } | { readonly kind: 'other' };

export async function observe(disk: Disk, path: string): Promise<Observed> {
  const stat = await disk.stat(path);
  if (stat === undefined) return { kind: 'absent' };
  if (stat.kind === 'link') return { kind: 'link', target: stat.target };
  if (stat.kind !== 'file') return { kind: stat.kind };
  const { size, mode, uid, gid } = stat;
  if (size > MAX_KEPT_BYTES) return { kind: 'file', sha256: 'too large', size, mode, uid, gid };
  try {
    return { kind: 'file', sha256: sha256Hex(await disk.read(path, MAX_KEPT_BYTES)), size, mode, uid, gid };
  } catch (error) {
    // The file has grown meanwhile.
    if (error instanceof CodedError && error.code === 'too-large')
      return { kind: 'file', sha256: 'too large', size, mode, uid, gid };
    throw error;
  }
}

/** Description of the difference, without contents, which may be secret; undefined if there is none. */
export function differenceOf(path: string, wanted: Recorded, found: Observed): string | undefined {
  const at = JSON.stringify(path);
  if (wanted.kind === 'absent') return found.kind === 'absent' ? undefined : `file ${at} exists; expected none`;
  if (found.kind === 'absent') return `could not stat file ${at}: no such file or directory`;
  if (wanted.kind !== found.kind)
    return `type mismatch for file ${at}: expected ${wanted.kind}; received ${found.kind}`;
  if (wanted.kind === 'link' && found.kind === 'link')
    return wanted.target === found.target
      ? undefined
      : `link mismatch for file ${at}: expected ${wanted.target}; received ${found.target}`;
  if (wanted.kind !== 'file' || found.kind !== 'file') return undefined;
  if (wanted.mode !== found.mode)
    return `mode mismatch for file ${at}: expected ${octal(wanted.mode)}; received ${octal(found.mode)}`;
  if (wanted.uid !== found.uid || wanted.gid !== found.gid)
    return `owner mismatch for file ${at}: expected ${wanted.uid}:${wanted.gid}; received ${found.uid}:${found.gid}`;
  if (wanted.sha256 === found.sha256) return undefined;
  const sizes = `expected ${wanted.size} bytes (sha256 ${wanted.sha256.slice(0, 12)})`;
  return `content mismatch for file ${at}: ${sizes}; received ${found.size} (sha256 ${found.sha256.slice(0, 12)})`;
}

const octal = (mode: number): string => `0${mode.toString(8)}`;
