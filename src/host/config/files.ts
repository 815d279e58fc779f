/** File access for configurations: referenced files and secrets. */
import { lstat, readFile, stat } from 'node:fs/promises';
import { CodedError, ifMissing, messageOf } from '../../base/errors.ts';
import { secretFileProblem } from '../../base/files/secret-file.ts';
import { writeWhole } from '../../pki/index.ts';

/** Writes a file unless it exists. Resolves with whether it was written. Throws CodedError 'unwritable'. */
export async function writeIfMissing(path: string, content: string, mode: number): Promise<boolean> {
  const isPresent = await lstat(path).then(() => true, ifMissing(false));
  // The file appears complete and on disk, or not at all: after a failure the next start would keep a part of it.
  if (!isPresent) await writeWhole(path, content, { mode, durable: true });
  return !isPresent;
}

/**
 * Reads a file to which a configuration refers. `referredToBy`: the referring file or flag, for the message. Throws
 * CodedError 'unreadable'.
 */
export async function readReferenced(path: string, referredToBy: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new CodedError('unreadable', `${referredToBy}: cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Called with the problem of a secret file that other users can access, and the fix. */
export type OpenSecret = (problem: string) => void;

/**
 * Like `readReferenced`, for keys, kubeconfigs, tokens and passwords. If other users can read or write the file, it
 * throws CodedError 'bad-config' with the command that fixes it, unless `tolerated` is given.
 */
export async function readSecret(path: string, referredToBy: string, tolerated?: OpenSecret): Promise<string> {
  await checkSecret(path, referredToBy, tolerated);
  return readReferenced(path, referredToBy);
}

/** Checks that other users cannot access a secret file. A missing file passes. */
export async function checkSecret(path: string, referredToBy: string, tolerated?: OpenSecret): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  const problem = found === undefined ? undefined : secretFileProblem(path, found, process.geteuid?.() ?? 0);
  if (problem === undefined) return;
  if (tolerated === undefined) throw new CodedError('bad-config', `${referredToBy}: ${problem}`);
  tolerated(problem);
}
