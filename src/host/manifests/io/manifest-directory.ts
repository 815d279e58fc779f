import { lstat, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { WatchPath } from '../../../base/files/path-watch-port.ts';
import { sha256Base64url } from '../../../wire/digest.ts';
import type { ManifestDirectory, ManifestFile } from '../port.ts';

const MAX_DEPTH = 4;
const MAX_FILES = 1000;
const NAME = /^[^.].*\.(ya?ml|json)(\.skip)?$/;

/**
 * A directory of manifests on this host's disk. Files whose names start with a dot are ignored, because editors create
 * temporary files with such names.
 */
export function createManifestDirectory(root: string, watchPath: WatchPath): ManifestDirectory {
  return {
    list: async () => {
      const files: ManifestFile[] = [];
      return (await collect(root, '', 0, files)) ? files : undefined;
    },
    read: (name) => readFile(join(root, name), 'utf8'),
    watch: (listener) => {
      try {
        return watchPath(root, listener);
      } catch {
        return { close: () => {} };
      }
    },
    hash: (text) => sha256Base64url(text),
  };
}

/** Adds the files of a directory to `files`. Returns false if the directory does not exist. */
async function collect(root: string, below: string, depth: number, files: ManifestFile[]): Promise<boolean> {
  let names: string[];
  try {
    names = (await readdir(join(root, below))).sort();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false;
    throw error;
  }
  for (const each of names) {
    if (each.startsWith('.')) continue;
    const name = below === '' ? each : `${below}/${each}`;
    const file = await inspect(join(root, name), name);
    if (file === 'directory') {
      if (depth < MAX_DEPTH) await collect(root, name, depth + 1, files);
    } else if (file !== undefined && NAME.test(each)) files.push(file);
    // The files beyond a limit would count as deleted, and their objects would be deleted.
    if (files.length > MAX_FILES) throw new Error(`${root}: more than ${MAX_FILES} files; merge some of them`);
  }
  return true;
}

/**
 * Undefined if there is no file. A file that exists but cannot be inspected, such as a dangling link, is returned, so
 * that it does not count as deleted; the error is reported when the file is read.
 */
async function inspect(path: string, name: string): Promise<ManifestFile | 'directory' | undefined> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) return 'directory';
    const { ino, size, mtimeMs } = found;
    return found.isFile() ? { name, stamp: `${ino}:${size}:${mtimeMs}`, sizeBytes: size } : undefined;
  } catch (error) {
    if (await isMissing(path)) return undefined;
    return { name, stamp: String((error as NodeJS.ErrnoException).code), sizeBytes: 0 };
  }
}

function isMissing(path: string): Promise<boolean> {
  return lstat(path).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  );
}
