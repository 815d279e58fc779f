/**
 * Merges the files of several directories as overlayfs merges image layers: a file hides the same file in lower layers.
 */
import { constants } from 'node:fs';
import { lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '../../../../base/errors.ts';

export interface TreeFile {
  /** Path relative to the roots. */
  readonly name: string;
  readonly path: string;
  readonly sizeBytes: number;
  readonly stamp: string;
}

export interface TreeLimits {
  readonly maxFiles: number;
  readonly maxBytes: number;
  readonly maxDepth: number;
}

export const CATALOG: TreeLimits = { maxFiles: 5_000, maxBytes: 256 * 1024 * 1024, maxDepth: 6 };

export const isCatalogFile = (name: string): boolean => /\.(ya?ml|json)$/.test(name);

/**
 * Regular files in `directory` below all `roots`, sorted by name. `roots` are ordered from the top layer down. Symbolic
 * links are omitted, because they may lead out of the tree. Throws CodedError 'catalog' if a limit is exceeded.
 */
export async function filesBelow(roots: readonly string[], directory: string, limits: TreeLimits): Promise<TreeFile[]> {
  const files: TreeFile[] = [];
  let bytes = 0;
  const visit = async (tops: readonly string[], below: string, depth: number): Promise<void> => {
    for (const [name, where] of await entriesOf(tops, below)) {
      const relative = below === '' ? name : `${below}/${name}`;
      const [top = ''] = where;
      const found = await lstat(join(top, relative));
      if (found.isDirectory()) {
        if (depth >= limits.maxDepth)
          throw new CodedError('catalog', `${relative}: directories are nested more than ${limits.maxDepth} deep`);
        await visit(await directoriesOf(where, relative), relative, depth + 1);
        continue;
      }
      if (!found.isFile()) continue;
      bytes += found.size;
      if (bytes > limits.maxBytes)
        throw new CodedError('catalog', `catalog is larger than ${limits.maxBytes >> 20} MiB; split it or prune it`);
      if (files.length >= limits.maxFiles)
        throw new CodedError('catalog', `catalog has more than ${limits.maxFiles} files; merge some of them`);
      const stamp = `${found.ino}:${found.size}:${found.mtimeMs}`;
      files.push({ name: relative, path: join(top, relative), sizeBytes: found.size, stamp });
    }
  };
  await visit(await directoriesOf(roots, directory), directory, 0);
  return files;
}

/** Names of the entries of a directory, each with the layers that contain it, from the top layer down. */
async function entriesOf(tops: readonly string[], below: string): Promise<[string, string[]][]> {
  const entries = new Map<string, string[]>();
  const hidden = new Set<string>();
  for (const top of tops) {
    for (const name of (await readdir(join(top, below))).sort()) {
      if (name.startsWith('.') || hidden.has(name)) continue;
      const stats = await lstat(join(top, below, name));
      // The device is an overlayfs whiteout, which hides the entry in lower layers.
      if (stats.isCharacterDevice() && stats.rdev === 0) hidden.add(name);
      else entries.set(name, [...(entries.get(name) ?? []), top]);
    }
  }
  return [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Layers in which `relative` is a directory. A layer in which it is something else hides the lower layers. */
async function directoriesOf(tops: readonly string[], relative: string): Promise<string[]> {
  const found: string[] = [];
  for (const top of tops) {
    const kind = await realKind(top, relative);
    if (kind === 'directory') found.push(top);
    else if (kind === 'other') break;
  }
  return found;
}

/**
 * Kind of the entry `relative`. Every component of the path is checked, because a link in it would lead out of the
 * tree.
 */
async function realKind(top: string, relative: string): Promise<'directory' | 'other' | 'missing'> {
  let path = top;
  for (const part of relative.split('/').filter((each) => each !== '')) {
    path = join(path, part);
    const stats = await lstat(path).catch(() => undefined);
    if (stats === undefined) return 'missing';
    if (!stats.isDirectory()) return 'other';
  }
  return (await lstat(path).catch(() => undefined))?.isDirectory() === true ? 'directory' : 'missing';
}

/** Opens a file for reading. Fails if a symbolic link has replaced the file. */
export const openFile = (path: string) => open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
