/** Files in several directories, each of which hides files of the later ones, as image layers do. */
import { constants } from 'node:fs';
import { lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '../../../../base/errors.ts';

export interface TreeFile {
  /** Relative to the root. */
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
 * Regular files below `directory` of each of `roots`, topmost first, sorted by name. Links are omitted, because they
 * may lead outside. Throws CodedError 'catalog' if a limit is exceeded.
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

/** Names in a directory, with the layers that contain them, topmost first. */
async function entriesOf(tops: readonly string[], below: string): Promise<[string, string[]][]> {
  const entries = new Map<string, string[]>();
  const hidden = new Set<string>();
  for (const top of tops) {
    for (const name of (await readdir(join(top, below))).sort()) {
      if (name.startsWith('.') || hidden.has(name)) continue;
      const stats = await lstat(join(top, below, name));
      // An overlayfs whiteout: the layer has removed the entry of lower layers.
      if (stats.isCharacterDevice() && stats.rdev === 0) hidden.add(name);
      else entries.set(name, [...(entries.get(name) ?? []), top]);
    }
  }
  return [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** The layers in which `relative` is a directory, up to the first in which it is another kind of entry. */
async function directoriesOf(tops: readonly string[], relative: string): Promise<string[]> {
  const found: string[] = [];
  for (const top of tops) {
    const kind = await realKind(top, relative);
    if (kind === 'directory') found.push(top);
    else if (kind === 'other') break;
  }
  return found;
}

/** Checks every component of the path, because a link in the middle would lead out of the tree. */
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

/** Does not follow a link that has replaced the file. */
export const openFile = (path: string) => open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
