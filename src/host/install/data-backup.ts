/** Removes the data of this host, or moves it to a directory that later starts do not use. */

import { execFile } from 'node:child_process';
import { mkdir, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { ignore } from '../../base/errors.ts';
import { adding, type OnProgress } from '../../base/progress.ts';
import { pathsBelow } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';

const run = promisify(execFile);

/** Directory for backups, relative to the root. */
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

/**
 * Removes the data if `purge` is set, otherwise moves it to a new directory. Resolves with that directory; undefined if
 * no data was moved.
 */
export async function backUpData(
  settings: Settings,
  purge: boolean,
  nowMs: number,
  onProgress?: OnProgress,
): Promise<string | undefined> {
  const { root } = settings;
  const paths = pathsBelow(root);
  const kept = join(root, KEPT, new Date(nowMs).toISOString().replaceAll(/[:.]/g, '-'));
  // Root file systems of containers need no backup, because each start creates them from images.
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
  // rmdir(2) keeps the directory if it contains files of other programs.
  await rm(paths.nodeSysconfig, { force: true });
  await rmdir(dirname(paths.nodeSysconfig)).catch(ignore('files of other programs are kept'));
  return moved ? kept : undefined;
}

/**
 * Data directories that are behind symbolic links, relative to the root. Their content is moved or removed; the link
 * belongs to the administrator and is kept.
 */
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

/** Entries of a directory. Linked directories are omitted, because their content is handled separately. */
async function entriesOf(path: string, root: string, linked: readonly string[]): Promise<string[]> {
  const entries = await readdir(path).catch(() => []);
  return entries.filter((entry) => !linked.includes(relative(root, join(path, entry))));
}

/** Moves an entry. Across file systems, it is copied and then removed. */
async function move(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    await run('cp', ['-a', '--', from, dirname(to)]);
    await rm(from, { recursive: true, force: true });
  }
}

/** Removes the content of a directory, and the directory itself unless it is a mount point or a link. */
async function removeDirectory(path: string): Promise<void> {
  for (const entry of await readdir(path).catch(() => [])) await removeEntry(join(path, entry));
  await rmdir(path).catch(ignore('a mount point or a link is kept'));
}

const removeEntry = (path: string): Promise<void> => rm(path, { recursive: true, force: true, maxRetries: 3 });
