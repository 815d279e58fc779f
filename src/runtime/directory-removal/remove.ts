/**
 * Removes trees whose depth exceeds every path limit. Entries are addressed relative to an open directory
 * (`/proc/self/fd/<n>/<name>`), and non-empty directories are moved to the top before they are opened, so two
 * descriptors are enough and no path is longer than one name.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, opendir, rename, rmdir, unlink } from 'node:fs/promises';

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Number of entries that are read ahead and processed concurrently. */
const BATCH = 64;
/** Maximum number of queued directories at the top; further ones are found when the top is read again. */
const MOST_QUEUED = 1024;
/** Maximum number of passes over the top. More passes mean that another process keeps adding entries. */
const MOST_PASSES = 10_000;

/** Removes a file, or a directory with its content (`Trees.remove` in port.ts). */
export async function removeTree(path: string): Promise<void> {
  const top = await openDirectory(Buffer.from(path));
  if (top === 'missing') return;
  if (top === 'other') {
    await quietly(unlink(path));
    return;
  }
  try {
    await new Removal(top, path).run();
  } finally {
    await top.close();
  }
  await quietly(rmdir(path));
}

interface Entry {
  readonly name: Buffer;
  readonly directory: boolean;
}

class Removal {
  readonly #top: FileHandle;
  readonly #path: string;
  readonly #prefix = `.removed-${randomBytes(6).toString('hex')}-`;
  #moved = 0;
  #queue: Buffer[] = [];

  constructor(top: FileHandle, path: string) {
    this.#top = top;
    this.#path = path;
  }

  async run(): Promise<void> {
    for (let pass = 0; pass < MOST_PASSES; pass += 1) {
      let found = false;
      for await (const batch of batchesOf(this.#top)) {
        found = true;
        const directories = await this.#unlinkFiles(this.#top, batch);
        for (const name of directories) await this.#moveUp(this.#top, name);
        await this.#drain();
      }
      if (!found) return;
    }
    throw new Error(`${this.#path}: does not become empty; end what writes there`);
  }

  async #drain(): Promise<void> {
    for (let name = this.#queue.pop(); name !== undefined; name = this.#queue.pop()) await this.#empty(name);
  }

  /** Empties and removes a directory of the top. Its non-empty sub-directories are moved to the top. */
  async #empty(name: Buffer): Promise<void> {
    const path = below(this.#top, name);
    const directory = await openDirectory(path);
    if (directory === 'missing') return;
    if (directory === 'other') {
      await quietly(unlink(path));
      return;
    }
    try {
      for await (const batch of batchesOf(directory)) {
        for (const child of await this.#unlinkFiles(directory, batch)) await this.#moveUp(directory, child);
      }
    } finally {
      await directory.close();
    }
    await quietly(rmdir(path), 'ENOTEMPTY');
  }

  /** Removes the files and returns the directories. */
  async #unlinkFiles(parent: FileHandle, entries: readonly Entry[]): Promise<readonly Buffer[]> {
    const kept = await Promise.all(
      entries.map(async ({ name, directory }) => {
        if (directory) return name;
        // Some file systems do not report the type of an entry, so the entry may be a directory.
        const isDirectory = (await quietly(unlink(below(parent, name)), 'EISDIR')) === 'EISDIR';
        return isDirectory ? name : undefined;
      }),
    );
    return kept.filter((name) => name !== undefined);
  }

  /**
   * Removes an empty directory, and moves any other one to the top. The move fails for a mount point, so a mounted file
   * system is never emptied.
   */
  async #moveUp(parent: FileHandle, name: Buffer): Promise<void> {
    const from = below(parent, name);
    if ((await quietly(rmdir(from), 'ENOTEMPTY')) !== 'ENOTEMPTY') return;
    this.#moved += 1;
    const to = Buffer.from(`${this.#prefix}${this.#moved}`);
    await quietly(rename(from, below(this.#top, to)));
    if (this.#queue.length < MOST_QUEUED) this.#queue.push(to);
  }
}

const below = (directory: FileHandle, name: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`/proc/self/fd/${directory.fd}/`), name]);

/** With the encoding `buffer`, names are bytes, contrary to the type that Node declares. */
const bytesOf = (name: string | Buffer): Buffer => (typeof name === 'string' ? Buffer.from(name) : name);

/** Names are bytes, because some are not valid UTF-8. */
async function* batchesOf(directory: FileHandle): AsyncGenerator<readonly Entry[]> {
  const entries = await opendir(`/proc/self/fd/${directory.fd}`, { encoding: 'buffer' as 'utf8', bufferSize: BATCH });
  let batch: Entry[] = [];
  for await (const entry of entries) {
    batch.push({ name: bytesOf(entry.name), directory: entry.isDirectory() });
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

async function openDirectory(path: Buffer): Promise<FileHandle | 'missing' | 'other'> {
  try {
    return await open(path, DIRECTORY);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT') return 'missing';
    if (code === 'ENOTDIR' || code === 'ELOOP') return 'other';
    throw error;
  }
}

/**
 * Ignores ENOENT, because another process may have removed the entry. Resolves with the error code if it is `expected`.
 */
async function quietly(work: Promise<unknown>, expected?: string): Promise<string | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT') return undefined;
    if (code !== undefined && code === expected) return code;
    throw error;
  }
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
