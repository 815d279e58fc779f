/**
 * Stream with the content of a catalog. For each file, sorted by name, it contains the name, a NUL, the size, a NUL and
 * the bytes of the file. The SHA-256 of the stream is the digest by which masters compare their copies.
 */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { CodedError } from '../../../../base/errors.ts';
import { chunksOf } from './file-chunks.ts';
import { CATALOG, isCatalogFile, type TreeFile } from './tree.ts';

const MAX_HEADER_BYTES = 4096;
const MAX_PART_BYTES = 255;

const headerOf = ({ name, sizeBytes }: TreeFile): Buffer => Buffer.from(`${name}\0${sizeBytes}\0`);

export const contentSize = (files: readonly TreeFile[]): number =>
  files.reduce((sum, file) => sum + headerOf(file).length + file.sizeBytes, 0);

export async function* contentOf(files: readonly TreeFile[]): AsyncGenerator<Uint8Array> {
  for (const file of files) {
    yield headerOf(file);
    // The chunk is copied, because `chunksOf` reuses its buffer for the next chunk.
    for await (const chunk of chunksOf(file.path, file.sizeBytes)) yield Buffer.from(chunk);
  }
}

export interface ContentSink {
  /** Creates a new file. `name` is validated: it is relative, and no part of it is a symbolic link. */
  create(name: string): Promise<Pick<FileHandle, 'write' | 'sync' | 'close'>>;
}

/**
 * Writes the files of a stream durably. Throws CodedError 'bad-file' if a name is invalid in a catalog, if the content
 * exceeds the limits of a catalog, or if its digest differs from `sha256` (hex).
 */
export async function receiveContent(
  content: AsyncIterable<Uint8Array>,
  sha256: string,
  sink: ContentSink,
): Promise<void> {
  const hash = createHash('sha256');
  let total = 0;
  let files = 0;
  let header = Buffer.alloc(0);
  let open: { readonly file: Awaited<ReturnType<ContentSink['create']>>; left: number } | undefined;
  const finish = async (): Promise<void> => {
    if (open === undefined || open.left > 0) return;
    const { file } = open;
    await file.sync();
    open = undefined;
    await file.close();
  };
  try {
    for await (const chunk of content) {
      hash.update(chunk);
      total += chunk.length;
      if (total > CATALOG.maxBytes + CATALOG.maxFiles * MAX_HEADER_BYTES)
        throw bad('the content is larger than the limit of a catalog');
      let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
      while (rest.length > 0) {
        if (open !== undefined) {
          const part = rest.subarray(0, open.left);
          await writeAll(open.file, part);
          open.left -= part.length;
          rest = rest.subarray(part.length);
        } else {
          header = Buffer.concat([header, rest]);
          const next = readHeader(header);
          if (next === undefined) break;
          if (++files > CATALOG.maxFiles) throw bad(`the content has more than ${CATALOG.maxFiles} files`);
          open = { file: await sink.create(next.name), left: next.size };
          rest = header.subarray(next.length);
          header = Buffer.alloc(0);
        }
        await finish();
      }
    }
    if (open !== undefined || header.length > 0 || files === 0) throw bad('the content ends too early');
    if (hash.digest('hex') !== sha256) throw bad('the file does not have its announced SHA-256');
  } finally {
    await open?.file.close();
  }
}

/** Parses the header of a file; undefined if more bytes are required. */
function readHeader(
  bytes: Buffer,
): { readonly name: string; readonly size: number; readonly length: number } | undefined {
  const afterName = bytes.indexOf(0);
  const afterSize = afterName < 0 ? -1 : bytes.indexOf(0, afterName + 1);
  if (afterSize < 0) {
    if (bytes.length > MAX_HEADER_BYTES) throw bad('a name is too long');
    return undefined;
  }
  const name = bytes.toString('utf8', 0, afterName);
  const size = bytes.toString('latin1', afterName + 1, afterSize);
  const parts = name.split('/');
  const isPlain = parts.every(
    (part) => part !== '' && !part.startsWith('.') && Buffer.byteLength(part) <= MAX_PART_BYTES,
  );
  if (!isPlain || parts.length > CATALOG.maxDepth + 1 || !isCatalogFile(name) || afterSize > MAX_HEADER_BYTES)
    throw bad(`${JSON.stringify(name.slice(0, 80))}: is not a file name of a catalog`);
  if (!/^(0|[1-9][0-9]{0,9})$/.test(size) || Number(size) > CATALOG.maxBytes) throw bad(`${name}: the size is wrong`);
  return { name, size: Number(size), length: afterSize + 1 };
}

const bad = (why: string): CodedError => new CodedError('bad-file', why);

async function writeAll(file: Pick<FileHandle, 'write'>, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
}
