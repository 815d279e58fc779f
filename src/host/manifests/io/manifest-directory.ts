import { readdir, readFile, stat } from 'node:fs/promises';
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
    if (files.length >= MAX_FILES) break;
    if (each.startsWith('.')) continue;
    const name = below === '' ? each : `${below}/${each}`;
    const found = await stat(join(root, name)).catch(() => undefined);
    if (found?.isDirectory() === true && depth < MAX_DEPTH) await collect(root, name, depth + 1, files);
    if (found?.isFile() !== true || !NAME.test(each)) continue;
    files.push({ name, stamp: `${found.ino}:${found.size}:${found.mtimeMs}`, sizeBytes: found.size });
  }
  return true;
}
