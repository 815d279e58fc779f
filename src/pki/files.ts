/** Files of the PKI. They are written atomically, and private keys are readable only by their owner. */
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, open, readFile, readlink, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CodedError, messageOf } from '../base/errors.ts';
import { secretFileProblem } from '../base/files/secret-file.ts';

export interface WriteMode {
  /** Permission bits of the file. Default: 0o600. */
  readonly mode?: number;
  /** Whether to flush to disk before resolving, for files that cannot be created again. */
  readonly durable?: boolean;
}

/** Reads a file; undefined if it does not exist. Throws CodedError 'unreadable' with the path for other failures. */
export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new CodedError('unreadable', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Like `readIfPresent`, for private files. If other users have access to the file, throws CodedError 'bad-config' with
 * the command that fixes it.
 */
export async function readSecretIfPresent(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  const problem = found === undefined ? undefined : secretFileProblem(path, found, process.geteuid?.() ?? 0);
  if (problem !== undefined) throw new CodedError('bad-config', problem);
  return readIfPresent(path);
}

/** Text of a PEM file with a newline at its end, so that another block can follow. */
export function endLine(pem: string): string {
  return pem === '' || pem.endsWith('\n') ? pem : `${pem}\n`;
}

/** Replaces a file atomically: writes a new file and renames it. */
export async function writeWhole(path: string, content: string, options: WriteMode = {}): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`);
  try {
    await writeFile(temporary, content, { mode: options.mode ?? 0o600, flush: options.durable === true, flag: 'wx' });
    await rename(temporary, path);
    if (options.durable === true) await syncDirectory(dirname(path));
  } catch (error) {
    await rm(temporary, { force: true });
    throw new CodedError('unwritable', `cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Replaces a certificate and its key, each by a rename. Both new files are complete on disk before the first rename, so
 * that the time in which a reader can get a mismatched pair is short.
 */
export async function writePair(
  files: { readonly cert: string; readonly key: string },
  pair: { readonly certPem: string; readonly keyPem: string },
  options: Pick<WriteMode, 'durable'> = {},
): Promise<void> {
  const suffix = randomBytes(6).toString('hex');
  const temporary = (path: string): string => join(dirname(path), `.${basename(path)}.${suffix}`);
  const flush = options.durable === true;
  try {
    await writeFile(temporary(files.key), pair.keyPem, { mode: 0o600, flush, flag: 'wx' });
    await writeFile(temporary(files.cert), pair.certPem, { mode: 0o644, flush, flag: 'wx' });
    // The key is replaced first, because a certificate without its key could never be renewed.
    await rename(temporary(files.key), files.key);
    await rename(temporary(files.cert), files.cert);
    if (flush) await syncDirectory(dirname(files.cert));
  } catch (error) {
    await Promise.all([files.key, files.cert].map((path) => rm(temporary(path), { force: true })));
    throw new CodedError('unwritable', `cannot write ${files.cert}: ${messageOf(error)}`, { cause: error });
  }
}

/** Removes a certificate and its key durably. */
export async function removePair(files: { readonly cert: string; readonly key: string }): Promise<void> {
  // The certificate is removed first. A key without a certificate counts as a missing pair.
  for (const path of [files.cert, files.key]) await rm(path, { force: true });
  await syncDirectory(dirname(files.cert));
}

/** Writes a file unless it already has the content. Resolves with whether the file was written. */
export async function writeIfDifferent(path: string, content: string, options: WriteMode = {}): Promise<boolean> {
  if ((await readIfPresent(path)) === content) return false;
  await writeWhole(path, content, options);
  return true;
}

/** Replaces the symbolic link `link` atomically. `target`: name in the same directory. */
export async function pointLink(link: string, target: string): Promise<void> {
  const stat = await lstat(link).catch(() => undefined);
  if (stat?.isSymbolicLink() && (await readlink(link)) === target) return;
  const temporary = `${link}.${randomBytes(6).toString('hex')}`;
  await symlink(target, temporary);
  await rename(temporary, link);
}

export async function makeDirectory(path: string, mode: number): Promise<void> {
  await mkdir(path, { recursive: true, mode });
}

async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
