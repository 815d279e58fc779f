/** Removes the data of this host, or moves it to a directory that later starts do not use. */

import { execFile } from 'node:child_process';
import { mkdir, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { adding, type OnProgress } from '../../base/command-line/progress.ts';
import { CodedError, ifMissing, ignore } from '../../base/errors.ts';
import { mountPoints } from '../../kubelet/io/volume-tools/mounts.ts';
import { trees } from '../../runtime/directory-removal/index.ts';
import { resolvedLinks } from '../config/data-links.ts';
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
 * no data was moved. Throws CodedError 'in-use' before the first change if other file systems are mounted in the data.
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
  const linked = await linkedDirectories(root);
  const mounted = await mountedDirectories(settings, linked);
  await removeRunDirectory(settings);
  // Root file systems of containers need no backup, because each start creates them from images.
  await removeDirectory(paths.containers);
  let moved = false;
  const separate = [...linked, ...mounted];
  const names = [...separate, ...DATA];
  const listed = await Promise.all(names.map((name) => entriesOf(join(root, name), root, separate)));
  const add = adding(listed.flat().length, onProgress);
  for (const [index, name] of names.entries()) {
    const path = join(root, name);
    for (const entry of listed[index] ?? []) {
      if (purge) await trees.remove(join(path, entry));
      else {
        await mkdir(join(kept, name), { recursive: true, mode: 0o700 });
        await move(join(path, entry), join(kept, name, entry));
        moved = true;
      }
      add(1);
    }
    await rmdir(path).catch(ignore('a mount point or a link is kept'));
  }
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
    for (const entry of await readdir(join(root, name), { withFileTypes: true }).catch(ifMissing([]))) {
      const path = join(root, name, entry.name);
      if (!entry.isSymbolicLink() || (await stat(path).catch(() => undefined))?.isDirectory() !== true) continue;
      found.push(relative(root, path));
    }
  }
  return found;
}

/**
 * Data directories on file systems of their own, relative to the root. Their content is moved or removed; the mount
 * point belongs to the administrator and is kept. Throws CodedError 'in-use' for a file system that is mounted anywhere
 * else in the data, such as a volume that could not be unmounted.
 */
async function mountedDirectories(settings: Settings, linked: readonly string[]): Promise<string[]> {
  const { root, paths } = settings;
  const names = new Map<string, string>();
  for (const name of DATA) {
    const directory = await resolvedLinks(join(root, name));
    for (const path of Object.values({ ...pathsBelow(root), ...paths })) {
      const at = relative(join(root, name), path);
      if (at !== '' && !at.includes('/') && at !== '..') names.set(join(directory, at), join(name, at));
    }
  }
  const areas = await Promise.all([...DATA, ...linked].map((name) => resolvedLinks(join(root, name))));
  const found = new Set<string>();
  for (const { target } of await mountPoints()) {
    if (areas.includes(target) || !areas.some((area) => target.startsWith(`${area}/`))) continue;
    const name = names.get(target);
    if (name === undefined) throw stillMounted(target);
    found.add(name);
  }
  return [...found];
}

const stillMounted = (target: string): CodedError =>
  new CodedError('in-use', `${target}: a file system is mounted there; unmount it, then run the command again`);

/** Throws CodedError 'in-use' if a file system, which may be a volume, is still mounted below the directory. */
export async function removeRunDirectory({ paths }: Pick<Settings, 'paths'>): Promise<void> {
  const run = await resolvedLinks(paths.run);
  const left = (await mountPoints()).find(({ target }) => target.startsWith(`${run}/`));
  if (left !== undefined) throw stillMounted(left.target);
  await trees.remove(run);
}

/** Entries of a directory, without the directories whose content is handled separately. */
async function entriesOf(path: string, root: string, separate: readonly string[]): Promise<string[]> {
  const entries = await readdir(path).catch(ifMissing([]));
  return entries.filter((entry) => !separate.includes(relative(root, join(path, entry))));
}

/** Moves an entry. Across file systems, it is copied, and removed only after the copy is on the disk. */
async function move(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    await run('cp', ['-a', '--', from, dirname(to)]);
    await run('sync', ['--file-system', '--', dirname(to)]);
    await trees.remove(from);
  }
}

/** Removes the content of a directory, and the directory itself unless it is a mount point or a link. */
async function removeDirectory(path: string): Promise<void> {
  for (const entry of await readdir(path).catch(ifMissing([]))) await trees.remove(join(path, entry));
  await rmdir(path).catch(ignore('a mount point or a link is kept'));
}
