/** Files below known directories. Links are not followed, so a tenant cannot choose what a bundle contains. */
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

/** Regular files below `directory`, at most `max`; directories that are links are not entered. */
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
 * Stores a file if it is a regular one. With `keepEnd`, only the last `maxBytes` are read, from the beginning of a
 * line. A missing file is no problem. `follow`: for files of the system, which may be links.
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
    await sink.stream(to, pieces(file, status.size, signal, options), {
      format: options.format ?? 'log',
      keepEnd: options.keepEnd === true,
      maxBytes: options.maxBytes,
    });
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    sink.missing(path, error.message);
  } finally {
    await file.close();
  }
}

async function* pieces(
  file: FileHandle,
  size: number,
  signal: AbortSignal,
  { maxBytes, keepEnd }: EntryOptions & { readonly maxBytes: number },
): AsyncGenerator<string> {
  const skipped = keepEnd === true && size > maxBytes ? size - maxBytes : 0;
  if (skipped > 0) yield `<the first ${skipped} bytes are left out>\n`;
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
