/**
 * Files of releases, named by their digest, in one directory. A file is verified and flushed before it gets its name.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isDigest, type ReleaseFile } from '../../../api/releases/manifest.ts';
import { counted } from '../../../base/command-line/progress.ts';
import { CodedError } from '../../../base/errors.ts';

/** Disk space reserved for the store and for logs. */
const RESERVE_BYTES = 256 * 1024 * 1024;
const PARTIAL = '.partial-';

export class DigestStore {
  readonly #directory: string;
  /** Digests of files that were verified since this process started. */
  readonly #whole = new Set<string>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  async pathOf(sha256: string): Promise<string | undefined> {
    if (!isDigest(sha256)) return undefined;
    const path = join(this.#directory, sha256);
    const present = await stat(path).catch(() => undefined);
    if (present?.isFile() !== true) {
      this.#whole.delete(sha256);
      return undefined;
    }
    if (this.#whole.has(sha256)) return path;
    if ((await digestOf(path)) !== sha256) {
      await rm(path, { force: true });
      return undefined;
    }
    this.#whole.add(sha256);
    return path;
  }

  /**
   * Writes a file. Throws CodedError 'full' before any write if there is not enough space, and 'bad-file' if the
   * content does not match the digest. A failure leaves no file.
   */
  async add(
    { sha256, size }: Pick<ReleaseFile, 'sha256' | 'size'>,
    content: AsyncIterable<Uint8Array>,
  ): Promise<string> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await this.checkSpace(size);
    const partial = join(this.#directory, `${PARTIAL}${randomUUID()}`);
    try {
      const file = await open(partial, 'wx', 0o600);
      try {
        const hash = createHash('sha256');
        let length = 0;
        for await (const chunk of content) {
          length += chunk.length;
          if (length > size) throw new CodedError('bad-file', `the release file is longer than ${size} bytes`);
          hash.update(chunk);
          await writeAll(file, chunk);
        }
        if (length !== size) throw new CodedError('bad-file', `the release file ends after ${length} of ${size} bytes`);
        if (hash.digest('hex') !== sha256)
          throw new CodedError('bad-file', 'the file does not have its announced SHA-256');
        await file.sync();
      } finally {
        await file.close();
      }
      const path = join(this.#directory, sha256);
      await rename(partial, path);
      await flushDirectory(this.#directory);
      this.#whole.add(sha256);
      return path;
    } catch (error) {
      await rm(partial, { force: true });
      throw error;
    }
  }

  /** Throws CodedError 'full' if less than RESERVE_BYTES would remain free after writing `bytes`. */
  async checkSpace(bytes: number): Promise<void> {
    const { bavail, bsize } = await statfs(await existing(this.#directory));
    const free = bavail * bsize;
    if (free < bytes + RESERVE_BYTES) {
      const megabytes = (count: number): number => Math.ceil(count / 1e6);
      throw new CodedError(
        'full',
        `${this.#directory}: ${megabytes(free)} MB are free, ${megabytes(bytes + RESERVE_BYTES)} MB are needed; remove old releases`,
      );
    }
  }

  /**
   * Removes all files except `digests`. A file that is not in `withdrawn` is removed only if it was written before
   * `writtenBeforeMs`, because an import that has not announced its release yet may have written it.
   */
  async retain(digests: readonly string[], withdrawn: ReadonlySet<string>, writtenBeforeMs: number): Promise<void> {
    const kept = new Set(digests);
    for (const name of await readdir(this.#directory).catch(() => [])) {
      // Another process may still write a partial file, so partial files are only removed at the start.
      if (kept.has(name) || !isDigest(name)) continue;
      const path = join(this.#directory, name);
      const writtenMs = (await stat(path).catch(() => undefined))?.mtimeMs ?? 0;
      if (withdrawn.has(name) || writtenMs < writtenBeforeMs) await rm(path, { force: true });
    }
  }

  /** Removes partial files of interrupted writers. Call it at the start, before any process writes files. */
  async removePartial(): Promise<void> {
    for (const name of await readdir(this.#directory).catch(() => []))
      if (name.startsWith(PARTIAL)) await rm(join(this.#directory, name), { force: true });
  }
}

export async function digestOf(path: string, onBytes: (bytes: number) => void = () => undefined): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of counted(createReadStream(path, { highWaterMark: 1 << 20 }), onBytes)) hash.update(chunk);
  return hash.digest('hex');
}

export async function flushDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  await directory.sync().finally(() => directory.close());
}

async function writeAll(file: Awaited<ReturnType<typeof open>>, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten;
}

async function existing(path: string): Promise<string> {
  const present = await stat(path).catch(() => undefined);
  return present === undefined ? existing(dirname(path)) : path;
}
