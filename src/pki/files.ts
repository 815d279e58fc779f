/** Files of the PKI: written atomically, and private keys readable only by their owner. */
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, open, readFile, readlink, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CodedError, messageOf } from '../base/errors.ts';
import { secretFileProblem } from '../base/secret-file.ts';

export interface WriteMode {
  /** Default 0o600. */
  readonly mode?: number;
  /** Flushes to disk before it resolves. For files that cannot be created again. */
  readonly durable?: boolean;
}

/** Returns undefined if the file does not exist. Other failures are CodedError 'unreadable' with its name. */
export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new CodedError('unreadable', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Like `readIfPresent`, for private files. Throws CodedError 'bad-config' with the command that fixes it if other users
 * have access to the file.
 */
export async function readSecretIfPresent(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  const problem = found === undefined ? undefined : secretFileProblem(path, found, process.geteuid?.() ?? 0);
  if (problem !== undefined) throw new CodedError('bad-config', problem);
  return readIfPresent(path);
}

/** Replaces the file by renaming a complete new one over it. */
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
 * Replaces a certificate and its key, each by a rename. Both are complete on disk before the first rename, which
 * minimizes the time in which a reader can get halves of two pairs.
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
    // The key first: a certificate without its key could never be renewed.
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
  // The certificate first: without it the pair counts as absent.
  for (const path of [files.cert, files.key]) await rm(path, { force: true });
  await syncDirectory(dirname(files.cert));
}

/** Writes the file unless it already has this content; returns whether it was written. */
export async function writeIfDifferent(path: string, content: string, options: WriteMode = {}): Promise<boolean> {
  if ((await readIfPresent(path)) === content) return false;
  await writeWhole(path, content, options);
  return true;
}

/** Points `link` at `target` (a name in the same directory) atomically. */
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
