/** A container's log as `kubectl logs` asks for it. Source: pkg/kubelet/kuberuntime/logs, core/v1 PodLogOptions. */
import { dirname } from 'node:path';
import type { LogFiles, OpenLog } from '../files-port.ts';
import type { FileWatch } from '../port.ts';
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
  /** Whether more may be written. */
  readonly running: () => boolean;
  /** Calls back when that may have changed. Returns an unsubscribe. */
  readonly onChange: (listener: () => void) => () => void;
  readonly files: LogFiles;
  readonly fileWatch: FileWatch;
  readonly signal: AbortSignal;
}

const CHUNK = 64 * 1024;
/** The format cuts lines at 16 KiB; what is longer without a newline is not a log of ours. */
const MAX_LINE = 1024 * 1024;

/** Bytes as they go to the client. Ends with the container when following, and at the end of the file otherwise. */
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
      // Asked before reading: what a container wrote before it ended is then surely read.
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
      // Rotation renames the log; what was written to it since this read is read first.
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

/** Drops the logs before the last lines; returns where those begin in the first that is left. */
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
    // At its beginning, the line may have begun in the file before.
    if ((left > 0 || offset === 0) && index > 0) continue;
    await closeAll(logs.splice(0, index));
    return offset;
  }
  return 0;
}

/** Remembers a notification that arrives while no reader waits. */
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
  /** Lines that may still come: the end of a log that is not followed is where it was when it was asked for. */
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
    // Monitors write UTC with its offset; clients are used to upstream's form of it.
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
