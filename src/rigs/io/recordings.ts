/** Recordings of a rig on this host. Symbolic links are not followed, and files are read through descriptors. */
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, opendir } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { CodedError } from '../../base/errors.ts';
import { dns1123SubdomainErrors } from '../../base/names.ts';
import type { OpenRecording, RecordingFile } from '../rig-host-port.ts';

/**
 * Limit of directory entries that are read. The host keeps fewer recordings; more entries were created by other
 * programs.
 */
const MAX_ENTRIES = 1_000;
const MAX_LISTED = 100;
const NAME = /^(\d{4}-\d\d-\d\dT\d\d)(\d\d)(\d\d)-(\d{3}Z)(?:-\d{4,6})?\.log$/;
const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** @param parent Directory with one directory per rig. @param writing Paths of files that are being written. */
export async function listRecordings(
  parent: string,
  rig: string,
  writing: ReadonlySet<string>,
): Promise<readonly RecordingFile[]> {
  const directory = await openDirectory(parent, rig);
  if (directory === undefined) return [];
  try {
    const found: RecordingFile[] = [];
    let entries = 0;
    for await (const { name } of await opendir(`/proc/self/fd/${directory.fd}`)) {
      entries += 1;
      if (entries > MAX_ENTRIES) break;
      const start = startOf(name);
      if (start === undefined) continue;
      const stats = await lstat(`/proc/self/fd/${directory.fd}/${name}`).catch(() => undefined);
      // The file may have been deleted since the directory was read, because it was the oldest.
      if (stats === undefined || !isOwn(stats)) continue;
      found.push({ name, start, bytes: stats.size, isOpen: writing.has(`${parent}/${rig}/${name}`) });
    }
    return found.sort(newestFirst).slice(0, MAX_LISTED);
  } finally {
    await directory.close();
  }
}

/**
 * Opens a recording up to its current size. Throws CodedError 'not-found', or 'failed' if other users can change the
 * directory.
 */
export async function openRecording(parent: string, rig: string, name: string): Promise<OpenRecording> {
  const missing = new CodedError('not-found', `rig "${rig}" has no recording of that name on this node; list them`);
  if (startOf(name) === undefined) throw missing;
  const directory = await openDirectory(parent, rig);
  if (directory === undefined) throw missing;
  let file: FileHandle;
  try {
    file = await open(`/proc/self/fd/${directory.fd}/${name}`, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch {
    throw missing;
  } finally {
    await directory.close();
  }
  try {
    const stats = await file.stat();
    if (!isOwn(stats)) throw missing;
    const { size: bytes } = stats;
    if (bytes > 0) {
      const content = file.createReadStream({ start: 0, end: bytes - 1 });
      return { name, bytes, content, close: () => content.destroy() };
    }
  } catch (error) {
    await file.close();
    throw error;
  }
  await file.close();
  return { name, bytes: 0, content: Readable.from([]), close: () => {} };
}

/**
 * Whether it is a regular file without further hard links. A second link could belong to a file in another directory.
 */
const isOwn = (stats: Stats): boolean => stats.isFile() && stats.nlink === 1;

/** Returns undefined if the rig has no recordings. */
async function openDirectory(parent: string, rig: string): Promise<FileHandle | undefined> {
  if (dns1123SubdomainErrors(rig).length > 0) return undefined;
  let directory: FileHandle;
  try {
    directory = await open(`${parent}/${rig}`, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ELOOP' || code === 'ENOTDIR') return undefined;
    throw error;
  }
  try {
    const { mode, uid } = await directory.stat();
    if ((mode & 0o077) === 0 && uid === process.geteuid?.()) return directory;
    throw new CodedError('failed', `the directory of rig "${rig}" is not private; set its mode to 0700`);
  } catch (error) {
    await directory.close();
    throw error;
  }
}

function startOf(name: string): string | undefined {
  const [, hour, minute, second, rest] = NAME.exec(name) ?? [];
  if (hour === undefined) return undefined;
  const start = `${hour}:${minute}:${second}.${rest}`;
  return Number.isNaN(Date.parse(start)) ? undefined : start;
}

const stem = ({ name }: RecordingFile): string => name.slice(0, -'.log'.length);

const newestFirst = (a: RecordingFile, b: RecordingFile): number => (stem(a) < stem(b) ? 1 : -1);
