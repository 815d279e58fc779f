/** Reading and writing the few files that the composition itself is about. */
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

/** Throws CodedError 'unreadable' naming the file and who refers to it. */
export async function readReferenced(path: string, referredToBy: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new CodedError('unreadable', `${referredToBy}: cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Told of a secret file that everybody may read, and of the mend. */
export type OpenSecret = (problem: string) => void;

/** As `readReferenced`, for private keys: others must not be able to read them, unless that is tolerated. */
export async function readSecret(path: string, referredToBy: string, tolerated?: OpenSecret): Promise<string> {
  const mode = await stat(path).then(
    (found) => found.mode,
    () => 0,
  );
  if ((mode & 0o007) !== 0) {
    const problem = `${path} is open to everybody; run chmod 600 on it`;
    if (tolerated === undefined) throw new CodedError('bad-config', `${referredToBy}: ${problem}`);
    tolerated(problem);
  }
  return readReferenced(path, referredToBy);
}
