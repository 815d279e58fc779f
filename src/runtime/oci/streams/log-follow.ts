/**
 * Follows a container's log (CRI format: `<RFC 3339 time> <stdout|stderr> <P|F> <content>`) from its current end and
 * returns the bytes that the container wrote. The monitor writes each piece immediately (P: without a newline), so
 * output is neither delayed nor lost, and a slow reader does not affect the container.
 */
import { type FileHandle, open, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { WatchPath } from '../../../base/files/path-watch-port.ts';

const READ_BYTES = 64 * 1024;

export interface LogFollower {
  /** Reads until `finish` or `close`. The next read waits for `emit`. */
  run(emit: (stream: 'stdout' | 'stderr', content: Uint8Array) => Promise<void>): Promise<void>;
  /** Reports that the log is complete: reading ends after its remaining content. */
  finish(): void;
  close(): void;
}

/** Opens the log at its end; later output of the container is returned. */
export async function followLog(path: string, watch: WatchPath): Promise<LogFollower> {
  let file: FileHandle = await open(path, 'r');
  let changed = true;
  let finishing = false;
  let closed = false;
  let wake: (() => void) | undefined;
  const notify = (): void => {
    changed = true;
    wake?.();
    wake = undefined;
  };
  const name = basename(path);
  let position: number;
  let watcher: ReturnType<WatchPath>;
  try {
    position = (await file.stat()).size;
    watcher = watch(dirname(path), (changedName) => {
      if (changedName === name) notify();
    });
  } catch (error) {
    await file.close();
    throw error;
  }

  const parse = createLogParser();

  /** Reopens the path after a rotation. The old file has been read to its end at this point. */
  const reopened = async (): Promise<boolean> => {
    const [now, then] = await Promise.all([stat(path).catch(() => undefined), file.stat()]);
    if (now === undefined || now.ino === then.ino) return false;
    await file.close();
    file = await open(path, 'r');
    position = 0;
    return true;
  };

  return {
    async run(emit) {
      const buffer = Buffer.alloc(READ_BYTES);
      try {
        while (!closed) {
          changed = false;
          const last = finishing;
          const { bytesRead } = await file.read(buffer, 0, READ_BYTES, position);
          if (bytesRead > 0) {
            position += bytesRead;
            for (const { stream, content } of parse(buffer.subarray(0, bytesRead))) await emit(stream, content);
            continue;
          }
          if (await reopened()) continue;
          if (last) return;
          if (!changed && !closed && !finishing) {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          }
        }
      } finally {
        watcher.close();
        await file.close();
      }
    },
    finish: () => {
      finishing = true;
      notify();
    },
    close: () => {
      closed = true;
      notify();
    },
  };
}

export interface LogPiece {
  readonly stream: 'stdout' | 'stderr';
  readonly content: Buffer;
}

/**
 * Returns a parser that splits chunks of a log into the container's output. An incomplete line waits for the next
 * chunk.
 */
export function createLogParser(): (chunk: Buffer) => readonly LogPiece[] {
  let pending: Buffer = Buffer.alloc(0);
  return (chunk) => {
    const bytes = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    const pieces: LogPiece[] = [];
    let start = 0;
    for (;;) {
      const end = bytes.indexOf(0x0a, start);
      if (end < 0) break;
      const piece = parseLine(bytes.subarray(start, end + 1));
      if (piece !== undefined) pieces.push(piece);
      start = end + 1;
    }
    pending = Buffer.from(bytes.subarray(start));
    return pieces;
  };
}

/** `line` ends with a newline, which is part of the content only for full lines. */
export function parseLine(
  line: Buffer,
): { readonly stream: 'stdout' | 'stderr'; readonly content: Buffer } | undefined {
  const afterTime = line.indexOf(0x20);
  const afterStream = line.indexOf(0x20, afterTime + 1);
  const afterTag = line.indexOf(0x20, afterStream + 1);
  if (afterTime < 0 || afterStream < 0 || afterTag < 0) return undefined;
  const stream = line.toString('latin1', afterTime + 1, afterStream);
  if (stream !== 'stdout' && stream !== 'stderr') return undefined;
  const full = line.toString('latin1', afterStream + 1, afterTag) === 'F';
  return { stream, content: Buffer.from(line.subarray(afterTag + 1, full ? line.length : line.length - 1)) };
}
