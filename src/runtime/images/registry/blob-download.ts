/**
 * Resumable downloads of layers: received bytes are kept by digest, and the next attempt, or the next process, requests
 * the rest (RFC 9110 §14 Range). The digest of the complete file is verified.
 */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rename, rm, stat, statfs, truncate } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Dispatcher } from 'undici';
import { messageOf } from '../../../base/errors.ts';
import { RuntimeError } from '../../port.ts';
import { isMissing, names, type StoreLayout } from '../layout.ts';

/** Larger layers are rejected before any byte is requested. */
export const MAX_LAYER_BYTES = 64 * 1024 ** 3;
/** Space on the images' file system that is kept free for other data. */
const RESERVE_BYTES = 256 * 1024 ** 2;
/** Inodes on the images' file system that are kept free for other data, and for the deletion of images. */
const RESERVE_INODES = 4_096;
/** Requests for the rest of a layer within one pull. Each must follow some received bytes. */
const MAX_RESUMES = 5;
const KEEP_PARTIAL_MS = 24 * 3_600_000;
const PARTIAL = /^[0-9a-f]{64}$/;

export interface Blob {
  readonly digest: string;
  readonly size: number;
}

export const gibibytes = (bytes: number): string => `${(bytes / 1024 ** 3).toFixed(1)} GiB`;

/** Free bytes of the file system at `path`. 0 if it has no inodes for further files. */
export async function roomAt(path: string): Promise<number> {
  const { bavail, bsize, files, ffree } = await statfs(path);
  // Some file systems report no inodes, because they create them as needed.
  if (files > 0 && ffree < RESERVE_INODES) return 0;
  return Math.max(0, bavail * bsize - RESERVE_BYTES);
}

/** Throws RuntimeError 'image-pull' if the declared layer sizes exceed the limits or the free space. */
export async function checkSizes(image: string, layers: readonly Blob[], path: string): Promise<void> {
  for (const { digest, size } of layers) {
    if (size <= MAX_LAYER_BYTES) continue;
    const why = `layer ${digest} has ${size} bytes, more than the limit of ${gibibytes(MAX_LAYER_BYTES)}`;
    throw new RuntimeError('image-pull', `pull ${image}: ${why}`);
  }
  const total = layers.reduce((sum, { size }) => sum + size, 0);
  const room = await roomAt(path);
  if (total <= room) return;
  const why = `the layers need ${gibibytes(total)}; the file system of the images has ${gibibytes(room)} free`;
  throw new RuntimeError('image-pull', `pull ${image}: no space left on device: ${why}`);
}

export interface BlobDownload extends Blob {
  /** File in a directory of this pull, named by the digest's hex digits. */
  readonly path: string;
  /** Requests the bytes from `from`. Throws RuntimeErrors. */
  readonly request: (from: number) => Promise<Dispatcher.ResponseData>;
  /** Called with the current size of the file. */
  readonly progress: (bytes: number) => void;
}

/** Throws RuntimeError 'image-pull'; the file then contains the received bytes. */
export async function downloadBlob(blob: BlobDownload): Promise<void> {
  const failed = (why: string, cause?: unknown): RuntimeError =>
    new RuntimeError('image-pull', `blob ${blob.digest}: ${why}`, { cause });
  let received = await sizeOf(blob.path);
  if (received > blob.size) received = 0;
  let hash = await hashOf(blob.path, received);
  for (let attempt = 0; received < blob.size || attempt === 0; attempt++) {
    if (received === blob.size && received > 0) break;
    const before = received;
    try {
      const response = await blob.request(received);
      if (received > 0 && !continues(response, received)) {
        received = 0;
        hash = createHash('sha256');
      }
      await truncate(blob.path, received).catch(ignoreMissing);
      const counting = new Transform({
        transform: (chunk: Buffer, _encoding, done) => {
          if (received + chunk.length > blob.size) return done(failed(`larger than ${blob.size} bytes`));
          hash.update(chunk);
          received += chunk.length;
          blob.progress(received);
          done(null, chunk);
        },
      });
      const out = createWriteStream(blob.path, { flags: 'a', mode: 0o600 });
      await pipeline(Readable.from(response.body), counting, out);
      if (received < blob.size) throw new Error(`ended after ${received} of ${blob.size} bytes`);
    } catch (error) {
      // The last received bytes may not have been written to the file.
      received = Math.min(received, await sizeOf(blob.path));
      hash = await hashOf(blob.path, received);
      if (error instanceof RuntimeError) throw error;
      if (received <= before || attempt >= MAX_RESUMES) throw failed(messageOf(error), error);
    }
  }
  const actual = `sha256:${hash.digest('hex')}`;
  if (actual === blob.digest) return;
  // Remove the file, so that a later attempt does not continue wrong bytes.
  await rm(blob.path, { force: true });
  throw failed(`has digest ${actual}`);
}

/** Whether the response contains the requested rest. */
function continues({ statusCode, headers }: Dispatcher.ResponseData, from: number): boolean {
  return statusCode === 206 && String(headers['content-range'] ?? '').startsWith(`bytes ${from}-`);
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    (error: unknown) => {
      ignoreMissing(error);
      return 0;
    },
  );
}

async function hashOf(path: string, length: number): Promise<Hash> {
  const hash = createHash('sha256');
  if (length > 0) for await (const chunk of createReadStream(path, { end: length - 1 })) hash.update(chunk as Buffer);
  return hash;
}

function ignoreMissing(error: unknown): void {
  if (!isMissing(error)) throw error;
}

/** Takes the partial download of an earlier pull. The rename gives it to only one pull. */
export async function takePartial(layout: StoreLayout, path: string): Promise<void> {
  await rename(join(layout.partial, basename(path)), path).catch(ignoreMissing);
}

/** Keeps the unfinished downloads of a directory for the next pull. */
export async function keepPartials(layout: StoreLayout, directory: string): Promise<void> {
  for (const name of (await names(directory)).filter((each) => PARTIAL.test(each))) {
    await rename(join(directory, name), join(layout.partial, name)).catch(ignoreMissing);
  }
}

/** Removes partial downloads that are too old. */
export async function dropPartials(layout: StoreLayout, nowMs: number): Promise<void> {
  for (const name of await names(layout.partial)) {
    const path = join(layout.partial, name);
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined && nowMs - found.mtimeMs > KEEP_PARTIAL_MS) await rm(path, { force: true });
  }
}
