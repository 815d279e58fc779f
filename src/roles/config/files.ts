/** File access of the composition: referenced files and secrets. */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { CodedError, messageOf } from '../../base/errors.ts';

/** True when it was written. Throws CodedError 'unwritable'. */
export async function writeIfMissing(path: string, content: string, mode: number): Promise<boolean> {
  try {
    await writeFile(path, content, { mode, flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw new CodedError('unwritable', `cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Throws CodedError 'unreadable' with the file and the referring file or flag. */
export async function readReferenced(path: string, referredToBy: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new CodedError('unreadable', `${referredToBy}: cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Called with the problem and the fix of a world-readable secret file. */
export type OpenSecret = (problem: string) => void;

/** As `readReferenced` for secrets: a world-readable file is rejected, or reported to `tolerated`. */
export async function readSecret(path: string, referredToBy: string, tolerated?: OpenSecret): Promise<string> {
  const mode = await stat(path).then(
    (found) => found.mode,
    () => 0,
  );
  if ((mode & 0o007) !== 0) {
    const problem = `${path} is world-readable; run chmod 600 on it`;
    if (tolerated === undefined) throw new CodedError('bad-config', `${referredToBy}: ${problem}`);
    tolerated(problem);
  }
  return readReferenced(path, referredToBy);
}
