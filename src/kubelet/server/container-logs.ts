/**
 * Container log in the form that `kubectl logs` requests. Source: pkg/kubelet/kuberuntime/logs, core/v1 PodLogOptions.
 */
import { dirname } from 'node:path';
import type { FileWatch } from '../port.ts';
import type { LogFiles, OpenLog } from '../ports/files-port.ts';
import { closeAll, nextLog, openLogs } from './log-chain.ts';
import { type LogLine, NEWLINE, parseLogLine, tailOf } from './log-lines.ts';

export interface LogOptions {
  readonly follow: boolean;
  readonly tailLines: number | undefined;
  readonly sinceMs: number | undefined;
  readonly timestamps: boolean;
  readonly limitBytes: number | undefined;
  readonly stream: 'All' | 'Stdout' | 'Stderr';
}

export interface LogSource {
  readonly path: string;
  /** Whether the container may still write to the log. */
  readonly running: () => boolean;
  /** Calls the listener when `running` may have changed. Returns an unsubscribe function. */
  readonly onChange: (listener: () => void) => () => void;
  readonly files: LogFiles;
  readonly fileWatch: FileWatch;
  readonly signal: AbortSignal;
}

const CHUNK = 64 * 1024;
/**
 * Maximum length of a line without a newline. The format splits lines at 16 KiB, so a longer one is not a valid log.
 */
const MAX_LINE = 1024 * 1024;

/** Bytes of the response. With `follow` it ends when the container ends, otherwise at the end of the file. */
export async function* readLog(source: LogSource, options: LogOptions): AsyncGenerator<Buffer> {
  const formatter = new Formatter(options);
  const wakeup = new Wakeup();
  const closers: (() => void)[] = [];
  if (options.follow) {
    const watcher = source.fileWatch.watch(dirname(source.path), () => wakeup.notify());
    closers.push(
      () => watcher.close(),
      source.onChange(() => wakeup.notify()),
    );
    const onAbort = (): void => wakeup.notify();
    source.signal.addEventListener('abort', onAbort);
    closers.push(() => source.signal.removeEventListener('abort', onAbort));
  }
  const waiting = await openLogs(source.files, source.path);
  let offset = await skipToTail(waiting, options.tailLines);
  let file = waiting.shift();
  let next: OpenLog | undefined;
  let rest: Buffer = Buffer.alloc(0);
  try {
    while (file !== undefined && !source.signal.aborted && !formatter.full) {
      // Check before reading, so that everything the container wrote before it ended is read.
      const last = !options.follow || !source.running();
      const buffer = Buffer.allocUnsafe(CHUNK);
      const bytesRead = await file.read(buffer, offset);
      if (bytesRead > 0) {
        offset += bytesRead;
        const data =
          rest.length === 0 ? buffer.subarray(0, bytesRead) : Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
        const end = data.lastIndexOf(NEWLINE);
        rest = data.subarray(end + 1);
        if (rest.length > MAX_LINE) rest = Buffer.alloc(0);
        const out = formatter.format(data.subarray(0, end + 1));
        if (out.length > 0) yield out;
        continue;
      }
      next ??= waiting.shift();
      if (next !== undefined) {
        await file.close();
        file = next;
        next = undefined;
        offset = 0;
        rest = Buffer.alloc(0);
        continue;
      }
      // Rotation renames the log, so the rest of the renamed file is read first.
      next = options.follow ? await nextLog(source.files, source.path, file) : undefined;
      if (next !== undefined) continue;
      if ((await file.size()) < offset) {
        offset = 0;
        continue;
      }
      if (last) return;
      await wakeup.wait();
    }
  } finally {
    await closeAll([file, next, ...waiting].filter((each) => each !== undefined));
    for (const close of closers) close();
  }
}

/**
 * Closes and removes the logs that precede the last `lines` lines. Returns the offset of those lines in the first
 * remaining log.
 */
async function skipToTail(logs: OpenLog[], lines: number | undefined): Promise<number> {
  if (lines === undefined) return 0;
  let left = lines;
  let later: string | undefined;
  for (let index = logs.length - 1; index >= 0; index -= 1) {
    const log = logs[index];
    if (log === undefined) continue;
    const { offset, found, stream } = await tailOf(log, left, later);
    left -= found;
    later = stream;
    // At the start of a file, the line may have started in the previous file.
    if ((left > 0 || offset === 0) && index > 0) continue;
    await closeAll(logs.splice(0, index));
    return offset;
  }
  return 0;
}

/** Stores a notification that arrives while no reader waits. */
class Wakeup {
  private pending = false;
  private resolve: (() => void) | undefined;
  notify(): void {
    this.pending = true;
    this.resolve?.();
  }
  async wait(): Promise<void> {
    if (!this.pending) {
      await new Promise<void>((resolve) => {
        this.resolve = resolve;
      });
    }
    this.pending = false;
    this.resolve = undefined;
  }
}

class Formatter {
  private readonly options: LogOptions;
  private left: number;
  /** Number of lines left. The end of a log that is not followed is fixed at the time of the request. */
  private lines: number;
  private begun = { stdout: false, stderr: false };

  constructor(options: LogOptions) {
    this.options = options;
    this.left = options.limitBytes ?? Number.POSITIVE_INFINITY;
    this.lines = options.follow ? Number.POSITIVE_INFINITY : (options.tailLines ?? Number.POSITIVE_INFINITY);
  }

  get full(): boolean {
    return this.left <= 0 || this.lines <= 0;
  }

  /** `data` consists of whole lines. */
  format(data: Buffer): Buffer {
    const parts: Buffer[] = [];
    let start = 0;
    while (start < data.length && !this.full) {
      const end = data.indexOf(NEWLINE, start);
      if (end < 0) break;
      const line = parseLogLine(data.subarray(start, end));
      if (line !== undefined && this.wanted(line)) this.add(parts, line);
      if (line?.partial !== true) this.lines -= 1;
      start = end + 1;
    }
    return Buffer.concat(parts);
  }

  private wanted(line: LogLine): boolean {
    const { stream, sinceMs } = this.options;
    if (stream !== 'All' && stream.toLowerCase() !== line.stream) return false;
    return sinceMs === undefined || Date.parse(line.timestamp) >= sinceMs;
  }

  private add(parts: Buffer[], line: LogLine): void {
    // Monitors write the UTC offset, but clients expect upstream's format.
    if (this.options.timestamps && !this.begun[line.stream])
      this.push(parts, Buffer.from(`${line.timestamp.replace(/\+00:00$/, 'Z')} `));
    this.begun[line.stream] = line.partial;
    this.push(parts, line.text);
    if (!line.partial) this.push(parts, LINE_END);
  }

  private push(parts: Buffer[], bytes: Buffer): void {
    const part = bytes.length > this.left ? bytes.subarray(0, this.left) : bytes;
    this.left -= part.length;
    if (part.length > 0) parts.push(part);
  }
}

const LINE_END = Buffer.from('\n');
