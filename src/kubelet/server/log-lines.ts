/**
 * CRI log format: `<RFC 3339 nano> <stdout|stderr> <P|F>[:tags] <text>`. P marks a partial line that continues in the
 * next entry. Source: k8s.io/cri-api docs, pkg/kubelet/kuberuntime/logs.
 */
import type { LogFiles, OpenLog } from '../ports/files-port.ts';

export interface LogLine {
  /** Timestamp as written in the file. */
  readonly timestamp: string;
  readonly stream: 'stdout' | 'stderr';
  readonly partial: boolean;
  /** Text without the newline. */
  readonly text: Buffer;
}

const SPACE = 0x20;
export const NEWLINE = 0x0a;

/** Returns undefined for text that is not in the format, such as a line truncated by a crash. `line` has no newline. */
export function parseLogLine(line: Buffer): LogLine | undefined {
  const first = line.indexOf(SPACE);
  if (first <= 0) return undefined;
  const second = line.indexOf(SPACE, first + 1);
  if (second < 0) return undefined;
  let third = line.indexOf(SPACE, second + 1);
  if (third < 0) third = line.length;
  const stream = line.toString('latin1', first + 1, second);
  if (stream !== 'stdout' && stream !== 'stderr') return undefined;
  const tag = line[second + 1];
  if (tag !== 0x50 && tag !== 0x46) return undefined;
  return {
    timestamp: line.toString('latin1', 0, first),
    stream,
    partial: tag === 0x50,
    text: line.subarray(Math.min(third + 1, line.length)),
  };
}

/** Block size for reading backwards. Lines are at most 16 KiB in this format. */
const CHUNK = 64 * 1024;

/**
 * Offset at which the last `lines` lines of the file begin. Reads backwards, so the cost is independent of the log's
 * size.
 */
export async function tailOffset(files: LogFiles, path: string, lines: number): Promise<number> {
  const file = await files.open(path);
  try {
    return (await tailOf(file, lines)).offset;
  } finally {
    await file.close();
  }
}

export interface Tail {
  readonly offset: number;
  /** Number of lines that begin at or after the offset. */
  readonly found: number;
  /** Stream of the first entry at or after the offset. Undefined when there is none. */
  readonly stream: string | undefined;
}

/**
 * Offset and number of the last `lines` lines of an open file; there may be fewer. Partial entries count as one line.
 * `later`: stream of the line that starts the next file of a rotated log, because its first parts may be at the end of
 * this file.
 */
export async function tailOf(file: OpenLog, lines: number, later?: string): Promise<Tail> {
  const size = await file.size();
  if (size === 0 || (lines <= 0 && later === undefined)) return { offset: size, found: 0, stream: later };
  let found = 0;
  let offset = size;
  let stream = later;
  for await (const entry of entriesBackwards(file, size)) {
    const isPart = entry.partial && stream !== undefined;
    if (found === lines && !(isPart && entry.stream === stream)) return { offset, found, stream };
    offset = entry.start;
    if (isPart) continue;
    found += 1;
    stream = entry.stream;
  }
  return { offset: 0, found, stream };
}

interface Entry {
  readonly start: number;
  readonly stream: string;
  readonly partial: boolean;
}

/** Maximum size of the time, stream and tag of an entry. */
const HEAD = 128;

/**
 * Complete entries of a file, from the last to the first. An entry without a newline is still being written and is
 * skipped.
 */
async function* entriesBackwards(file: OpenLog, size: number): AsyncGenerator<Entry> {
  const entry = (start: number, head: Buffer): Entry => {
    const { stream = '', partial = false } = parseLogLine(head) ?? {};
    return { start, stream, partial };
  };
  let end = size;
  let isWhole = false;
  let later: Buffer = Buffer.alloc(0);
  while (end > 0) {
    const start = Math.max(0, end - CHUNK);
    const chunk = Buffer.alloc(end - start);
    const bytesRead = await file.read(chunk, start);
    const data = Buffer.concat([chunk.subarray(0, bytesRead), later]);
    for (let index = bytesRead - 1; index >= 0; index -= 1) {
      if (data[index] !== NEWLINE) continue;
      if (isWhole) yield entry(start + index + 1, data.subarray(index + 1, index + 1 + HEAD));
      isWhole = true;
    }
    if (start === 0 && isWhole) yield entry(0, data.subarray(0, HEAD));
    later = data.subarray(0, HEAD);
    end = start;
  }
}

/** Last lines of both streams as text, limited to `bytes`. */
export async function tailOfLog(
  files: LogFiles,
  path: string,
  limit: { readonly lines: number; readonly bytes: number },
): Promise<string> {
  const offset = await tailOffset(files, path, limit.lines);
  const file = await files.open(path);
  try {
    const size = await file.size();
    const length = Math.min(size - offset, 4 * limit.bytes + CHUNK);
    const start = Math.max(offset, size - length);
    const buffer = Buffer.alloc(size - start);
    const bytesRead = await file.read(buffer, start);
    const parts: Buffer[] = [];
    for (const raw of splitLines(buffer.subarray(0, bytesRead))) {
      const line = parseLogLine(raw);
      if (line === undefined) continue;
      parts.push(line.text);
      if (!line.partial) parts.push(Buffer.from('\n'));
    }
    const text = Buffer.concat(parts);
    return text.subarray(Math.max(0, text.length - limit.bytes)).toString('utf8');
  } finally {
    await file.close();
  }
}

function* splitLines(buffer: Buffer): Generator<Buffer> {
  let start = 0;
  for (;;) {
    const end = buffer.indexOf(NEWLINE, start);
    if (end < 0) break;
    yield buffer.subarray(start, end);
    start = end + 1;
  }
  if (start < buffer.length) yield buffer.subarray(start);
}
