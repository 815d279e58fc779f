/** Compares the recorded entry of a path with the present one. */
import type { Observed, Recorded } from './port.ts';

/** Describes the difference; undefined if there is none. File contents are not included, because they may be secret. */
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
