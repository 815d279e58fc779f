/**
 * Reads files below known directories. Links are not followed, so a tenant cannot determine which files a bundle
 * contains.
 */
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { EntryOptions, SectionSink } from '../../support-bundle/port.ts';

const PIECE = 64 * 1024;
const MAX_DEPTH = 8;

export interface FoundFile {
  readonly path: string;
  readonly size: number;
  readonly mtimeMs: number;
}

/** Regular files below `directory`, at most `max`. Links to directories are not followed. */
export async function filesBelow(directory: string, max: number, depth = MAX_DEPTH): Promise<FoundFile[]> {
  const found: FoundFile[] = [];
  const visit = async (place: string, left: number): Promise<void> => {
    const entries = await readdir(place, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (found.length >= max) return;
      const path = join(place, entry.name);
      if (entry.isDirectory() && left > 0) await visit(path, left - 1);
      else if (entry.isFile()) {
        const status = await lstat(path).catch(() => undefined);
        if (status?.isFile() === true) found.push({ path, size: status.size, mtimeMs: status.mtimeMs });
      }
    }
  };
  await visit(directory, depth);
  return found;
}

/**
 * Stores a regular file. A missing file is not a problem. With `keepEnd`, at most the last `maxBytes` are read,
 * beginning at a line. `follow`: whether links are followed, which is only set for files of the system.
 */
export async function collectFile(
  sink: SectionSink,
  path: string,
  to: string,
  signal: AbortSignal,
  options: EntryOptions & { readonly maxBytes: number; readonly follow?: boolean },
): Promise<void> {
  const links = options.follow === true ? 0 : constants.O_NOFOLLOW;
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | links);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) sink.missing(path, messageOf(error));
    return;
  }
  try {
    const status = await file.stat();
    if (!status.isFile()) throw new CodedError('not-a-file', 'is not a regular file');
    const { format = 'log', keepEnd = false, maxBytes } = options;
    const skipped = keepEnd && status.size > maxBytes ? status.size - maxBytes : 0;
    await sink.stream(to, pieces(file, skipped, signal), {
      format,
      keepEnd,
      maxBytes,
      beginsInMiddle: skipped > 0,
    });
    if (skipped > 0) sink.missing(path, `the oldest ${skipped} bytes are left out`);
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    sink.missing(path, error.message);
  } finally {
    await file.close();
  }
}

/** Reads the file in pieces, beginning at the first line after offset `skipped`. */
async function* pieces(file: FileHandle, skipped: number, signal: AbortSignal): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let inLine = skipped > 0;
  for (let at = skipped; !signal.aborted; ) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(PIECE), 0, PIECE, at);
    if (bytesRead === 0) break;
    at += bytesRead;
    const text = decoder.decode(buffer.subarray(0, bytesRead), { stream: true });
    const start = inLine ? text.indexOf('\n') + 1 : 0;
    if (inLine && start === 0) continue;
    inLine = false;
    yield text.slice(start);
  }
}
