/** Removes the data of this host, or moves it to a directory that later starts do not use. */

import { execFile } from 'node:child_process';
import { mkdir, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { ignore } from '../../base/errors.ts';
import { adding, type OnProgress } from '../../base/progress.ts';
import { pathsBelow, type Settings } from '../config/settings.ts';

const run = promisify(execFile);

/** Directory of kept data, relative to the root. */
export const KEPT = 'var/lib/hyperedge-kept';
/** Directories with settings and data, relative to the root. */
export const DATA = [
  'etc/origin',
  'etc/etcd',
  'var/lib/origin',
  'var/log/origin',
  'var/log/pods',
  'var/log/containers',
];

/** Resolves with the new directory of the data; undefined if it was removed or there was none. */
export async function backUpData(
  settings: Settings,
  purge: boolean,
  nowMs: number,
  onProgress?: OnProgress,
): Promise<string | undefined> {
  const { root } = settings;
  const paths = pathsBelow(root);
  const kept = join(root, KEPT, new Date(nowMs).toISOString().replaceAll(/[:.]/g, '-'));
  // Root file systems of containers are created from images at every start.
  await removeDirectory(paths.containers);
  let moved = false;
  const linked = await linkedDirectories(root);
  const names = [...linked, ...DATA];
  const listed = await Promise.all(names.map((name) => entriesOf(join(root, name), root, linked)));
  const add = adding(listed.flat().length, onProgress);
  for (const [index, name] of names.entries()) {
    const path = join(root, name);
    for (const entry of listed[index] ?? []) {
      if (purge) await removeEntry(join(path, entry));
      else {
        await mkdir(join(kept, name), { recursive: true, mode: 0o700 });
        await move(join(path, entry), join(kept, name, entry));
        moved = true;
      }
      add(1);
    }
    await rmdir(path).catch(ignore('a mount point or a link is kept'));
  }
  await rm(paths.run, { recursive: true, force: true });
  // The directory is kept if it contains files of other programs.
  await rm(paths.nodeSysconfig, { force: true });
  await rmdir(dirname(paths.nodeSysconfig)).catch(ignore('files of other programs are kept'));
  return moved ? kept : undefined;
}

/** Linked data directories, relative to the root. Their content is data; the link belongs to the administrator. */
async function linkedDirectories(root: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of DATA) {
    for (const entry of await readdir(join(root, name), { withFileTypes: true }).catch(() => [])) {
      const path = join(root, name, entry.name);
      if (!entry.isSymbolicLink() || (await stat(path).catch(() => undefined))?.isDirectory() !== true) continue;
      found.push(relative(root, path));
    }
  }
  return found;
}

/** Entries without the linked directories, which are handled separately. */
async function entriesOf(path: string, root: string, linked: readonly string[]): Promise<string[]> {
  const entries = await readdir(path).catch(() => []);
  return entries.filter((entry) => !linked.includes(relative(root, join(path, entry))));
}

/** Moves an entry; to another file system it is copied first. */
async function move(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    await run('cp', ['-a', '--', from, dirname(to)]);
    await rm(from, { recursive: true, force: true });
  }
}

/** Removes a directory. A mount point or a link is emptied and kept. */
async function removeDirectory(path: string): Promise<void> {
  for (const entry of await readdir(path).catch(() => [])) await removeEntry(join(path, entry));
  await rmdir(path).catch(ignore('a mount point or a link is kept'));
}

const removeEntry = (path: string): Promise<void> => rm(path, { recursive: true, force: true, maxRetries: 3 });
