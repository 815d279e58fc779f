/**
 * Writes audit events as JSON lines to a file that is rotated when it is full. Old files are named as by lumberjack,
 * `audit-2026-01-02T03-04-05.678.log`, with `.gz` if compressed, and are deleted by age and by number.
 */
import { type FileHandle, mkdir, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { AuditMode, AuditSink } from '../../audit/port.ts';
import { OldFiles } from './old-files.ts';

export interface AuditLogOptions {
  /** Path of the file. `-` means standard output. */
  readonly path: string;
  readonly mode: AuditMode;
  /** Size at which the file is rotated. 0 disables rotation. */
  readonly maxMegabytes: number;
  /** Maximum age of rotated files in days. 0 means no limit. */
  readonly maxDays: number;
  readonly maxBackups: number;
  readonly compress: boolean;
  /** Maximum number of events that wait for the disk. */
  readonly bufferEvents: number;
  readonly maxEventBytes?: number;
  readonly clock: Clock;
  readonly log: Log;
}

const BATCH_EVENTS = 500;
const PAUSE_MS = 1_000;

interface Waiting {
  readonly line: string;
  /** Receives whether the event has been written. */
  readonly settle: ((written: boolean) => void) | undefined;
}

/** Opens the file. Rejects if it is not writable. */
export async function openAuditLog(options: AuditLogOptions): Promise<AuditSink> {
  const file = new LogFile(options);
  await file.open();
  return file;
}

class LogFile implements AuditSink {
  readonly blocks: boolean;
  readonly maxEventBytes?: number;
  readonly #options: AuditLogOptions;
  readonly #maxBytes: number;
  readonly #old: OldFiles;
  #handle: FileHandle | undefined;
  #bytes = 0;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  #dropped = 0;
  #closing = false;

  constructor(options: AuditLogOptions) {
    this.#options = options;
    this.blocks = options.mode !== 'batch';
    if (options.maxEventBytes !== undefined) this.maxEventBytes = options.maxEventBytes;
    this.#maxBytes = options.maxMegabytes > 0 ? options.maxMegabytes * 1024 * 1024 : Number.POSITIVE_INFINITY;
    this.#old = new OldFiles(options);
  }

  async open(): Promise<void> {
    const { path } = this.#options;
    if (path === '-') return;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    this.#handle = await open(path, 'a', 0o600);
    this.#bytes = (await this.#handle.stat()).size;
  }

  accept(line: string): Promise<boolean> | undefined {
    const { mode } = this.#options;
    if (this.#waiting.length >= this.#options.bufferEvents) {
      this.#drop(1);
      return mode === 'blocking-strict' ? Promise.resolve(false) : undefined;
    }
    let kept: Promise<boolean> | undefined;
    if (mode === 'batch') this.#waiting.push({ line, settle: undefined });
    else
      kept = new Promise((resolve) => {
        this.#waiting.push({ line, settle: (written) => resolve(written || mode === 'blocking') });
      });
    this.#writing ??= this.#drain();
    return kept;
  }

  #drop(events: number): void {
    const before = this.#dropped;
    this.#dropped += events;
    if (before === 0 || Math.floor(before / 1000) !== Math.floor(this.#dropped / 1000))
      this.#options.log.error('audit events dropped: disk too slow or full', { dropped: this.#dropped });
  }

  async #drain(): Promise<void> {
    // Events of this turn of the event loop are written together.
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH_EVENTS);
      let written = true;
      try {
        await this.#write(Buffer.from(`${batch.map(({ line }) => line).join('\n')}\n`));
      } catch (error) {
        this.#options.log.error('audit log not written', { path: this.#options.path, error: messageOf(error) });
        if (this.#options.mode === 'batch') {
          // In mode batch, the write is retried: a full disk may get space again, and the queue is limited.
          if (this.#closing) break;
          await new Promise<void>((resolve) => void this.#options.clock.setTimer(PAUSE_MS, resolve));
          continue;
        }
        // A blocking request waits for this event, so it fails instead of being retried.
        written = false;
        this.#drop(batch.length);
      }
      this.#waiting.splice(0, batch.length);
      for (const { settle } of batch) settle?.(written);
    }
    // Reset in the same turn as the check of the queue, so that the next event starts a new writer.
    this.#writing = undefined;
  }

  async #write(bytes: Buffer): Promise<void> {
    if (this.#options.path === '-') {
      await new Promise<void>((resolve) => process.stdout.write(bytes, () => resolve()));
      return;
    }
    if (this.#bytes > 0 && this.#bytes + bytes.length > this.#maxBytes) await this.#rotate();
    if (this.#handle === undefined) await this.open();
    if (this.#handle !== undefined) await append(this.#handle, bytes);
    this.#bytes += bytes.length;
  }

  async #rotate(): Promise<void> {
    const { path, clock } = this.#options;
    await this.#handle?.close();
    this.#handle = undefined;
    await rename(path, this.#old.nameAt(clock.nowMs()));
    await this.open();
    this.#old.tidy();
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.#writing;
    await Promise.all([this.#handle?.close(), this.#old.close()]);
    this.#handle = undefined;
  }
}

/**
 * Appends all bytes. If a full disk takes only some of them, removes these again: the caller retries or drops all
 * events, so the remains of a line would be joined to the next line.
 */
async function append(file: FileHandle, bytes: Buffer): Promise<void> {
  let written = 0;
  try {
    while (written < bytes.length) written += (await file.write(bytes, written)).bytesWritten;
  } catch (error) {
    if (written > 0) await file.truncate((await file.stat()).size - written);
    throw error;
  }
}
