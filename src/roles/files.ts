/** Reading and writing the few files that the composition itself is about. */
import { open, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CodedError, messageOf } from '../base/errors.ts';
import { secretFileProblem } from '../base/secret-file.ts';

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

/** As a whole or not at all, and on the disk when it resolves. Throws CodedError 'unwritable'. */
export async function writeDurably(path: string, content: string, mode: number): Promise<void> {
  try {
    await writeFile(`${path}.new`, content, { mode, flush: true });
    await rename(`${path}.new`, path);
    await flushDirectory(dirname(path));
  } catch (error) {
    throw new CodedError('unwritable', `cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
}

export async function flushDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
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

/** Called with the sentence about a secret file that others have access to, where that is not an error. */
export type OpenSecret = (problem: string) => void;

/**
 * As `readReferenced`, for private material: keys, kubeconfigs, tokens, passwords. A file that others can read or write is CodedError
 * 'bad-config' with the command that repairs it, unless `tolerated` is given.
 */
export async function readSecret(path: string, referredToBy: string, tolerated?: OpenSecret): Promise<string> {
  await checkSecret(path, referredToBy, tolerated);
  return readReferenced(path, referredToBy);
}

/** The check alone. A file that does not exist passes. */
export async function checkSecret(path: string, referredToBy: string, tolerated?: OpenSecret): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  const problem = found === undefined ? undefined : secretFileProblem(path, found, process.geteuid?.() ?? 0);
  if (problem === undefined) return;
  if (tolerated === undefined) throw new CodedError('bad-config', `${referredToBy}: ${problem}`);
  tolerated(problem);
}
