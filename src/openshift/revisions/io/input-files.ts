/** Reads input files with their contents. KeepingReader reads a file again only if the file has changed. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '../../../base/errors.ts';

const MAX_DEPTH = 4;
const MAX_FILES = 500;
const MAX_BYTES = 4 * 1024 * 1024;
/** A file that changed this recently may change again without a new time stamp, so its content is not reused. */
const FRESH_MS = 2_000;

export interface Input {
  readonly content: Buffer;
  readonly mode: number;
}

export interface InputReader {
  /** Returns undefined if the file does not exist. A caching reader returns the same object until the file changes. */
  read(path: string): Promise<Input | undefined>;
}

export const plainReader: InputReader = {
  async read(path) {
    try {
      const [content, status] = await Promise.all([readFile(path), stat(path)]);
      return { content, mode: status.mode & 0o777 };
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    }
  },
};

/** Caches contents and detects changes by the inode, size and times of a file. Meant for polling a few files. */
export class KeepingReader implements InputReader {
  readonly #kept = new Map<string, { readonly identity: string; readonly input: Input }>();

  async read(path: string): Promise<Input | undefined> {
    const status = await stat(path).catch(() => undefined);
    const { dev, ino, size, mode, mtimeMs, ctimeMs } = status ?? {};
    const identity = [dev, ino, size, mode, mtimeMs, ctimeMs].join(' ');
    const kept = this.#kept.get(path);
    if (status !== undefined && kept?.identity === identity) return kept.input;
    const input = await plainReader.read(path);
    const isFresh = status === undefined || Date.now() - status.ctimeMs < FRESH_MS;
    if (input === undefined || isFresh || input.content.length !== size) this.#kept.delete(path);
    else this.#kept.set(path, { identity, input });
    return input;
  }
}

/** Regular files below `path`, by relative name, except those that `skips` matches. Symbolic links are followed. */
export async function readTree(
  path: string,
  skips: (name: string) => boolean,
  reader: InputReader = plainReader,
): Promise<Map<string, Input>> {
  const found = new Map<string, Input>();
  await addTree(found, { path, skips, reader }, '', 0);
  return found;
}

interface Tree {
  readonly path: string;
  readonly skips: (name: string) => boolean;
  readonly reader: InputReader;
}

/** Adds the files of the directory `below` of a tree. */
async function addTree(found: Map<string, Input>, tree: Tree, below: string, depth: number): Promise<void> {
  const { path, skips, reader } = tree;
  const names = await readdir(join(path, below)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  for (const each of names.sort()) {
    if (skips(each)) continue;
    const name = below === '' ? each : `${below}/${each}`;
    const status = await stat(join(path, name)).catch(() => undefined);
    if (status?.isDirectory() === true && depth < MAX_DEPTH) await addTree(found, tree, name, depth + 1);
    if (status?.isFile() !== true || status.size > MAX_BYTES) continue;
    if (found.size >= MAX_FILES) throw new CodedError('too-many-files', `${path}: more than ${MAX_FILES} files`);
    const input = await reader.read(join(path, name));
    if (input !== undefined) found.set(name, input);
  }
}
