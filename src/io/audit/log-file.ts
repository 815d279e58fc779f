/**
 * Audit events as JSON lines in a file that is exchanged when it is full. Old ones are named as lumberjack names them,
 * `audit-2026-01-02T03-04-05.678.log`, and go by age and by number.
 */
import { type FileHandle, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { AuditSink } from '../../components/apiserver/audit/port.ts';

export interface AuditLogOptions {
  /** `-`: standard output. */
  readonly path: string;
  /** 0: 100 MB. */
  readonly maxMegabytes: number;
  /** 0: no limit. */
  readonly maxDays: number;
  readonly maxBackups: number;
  /** Events that may wait for the disk. */
  readonly bufferEvents: number;
  readonly clock: Clock;
  readonly log: Log;
}

const DAY_MS = 24 * 3600 * 1000;
const DEFAULT_MEGABYTES = 100;
const BATCH_EVENTS = 500;
const PAUSE_MS = 1_000;

/** Opens the file. Rejects when it cannot be written. */
export async function openAuditLog(options: AuditLogOptions): Promise<AuditSink> {
  const file = new LogFile(options);
  await file.open();
  return file;
}

class LogFile implements AuditSink {
  readonly #options: AuditLogOptions;
  readonly #maxBytes: number;
  #handle: FileHandle | undefined;
  #bytes = 0;
  #waiting: string[] = [];
  #writing: Promise<void> | undefined;
  #dropped = 0;
  #closing = false;

  constructor(options: AuditLogOptions) {
    this.#options = options;
    this.#maxBytes = (options.maxMegabytes > 0 ? options.maxMegabytes : DEFAULT_MEGABYTES) * 1024 * 1024;
  }

  async open(): Promise<void> {
    const { path } = this.#options;
    if (path === '-') return;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    this.#handle = await open(path, 'a', 0o600);
    this.#bytes = (await this.#handle.stat()).size;
  }

  accept(event: string): void {
    if (this.#waiting.length >= this.#options.bufferEvents) {
      this.#dropped += 1;
      if (this.#dropped === 1 || this.#dropped % 1000 === 0)
        this.#options.log.error('audit events are dropped: the disk is too slow', { dropped: this.#dropped });
      return;
    }
    this.#waiting.push(event);
    this.#writing ??= this.#drain().finally(() => {
      this.#writing = undefined;
    });
  }

  async #drain(): Promise<void> {
    // What comes in this turn of the loop goes out together.
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH_EVENTS);
      try {
        await this.#write(Buffer.from(`${batch.join('\n')}\n`));
      } catch (error) {
        // A full disk may have room again; what waits is bounded.
        this.#options.log.error('audit log cannot be written', { path: this.#options.path, error: messageOf(error) });
        if (this.#closing) return;
        await new Promise<void>((resolve) => void this.#options.clock.setTimer(PAUSE_MS, resolve));
        continue;
      }
      this.#waiting.splice(0, batch.length);
    }
  }

  async #write(bytes: Buffer): Promise<void> {
    if (this.#options.path === '-') {
      await new Promise<void>((resolve) => process.stdout.write(bytes, () => resolve()));
      return;
    }
    if (this.#bytes > 0 && this.#bytes + bytes.length > this.#maxBytes) await this.#rotate();
    if (this.#handle === undefined) await this.open();
    await this.#handle?.appendFile(bytes);
    this.#bytes += bytes.length;
  }

  async #rotate(): Promise<void> {
    const { path, clock } = this.#options;
    await this.#handle?.close();
    this.#handle = undefined;
    const stamp = new Date(clock.nowMs()).toISOString().slice(0, 23).replaceAll(':', '-');
    const extension = extname(path);
    await rename(path, join(dirname(path), `${basename(path, extension)}-${stamp}${extension}`));
    await this.open();
    await this.#removeOld();
  }

  async #removeOld(): Promise<void> {
    const { path, clock, maxDays, maxBackups } = this.#options;
    const extension = extname(path);
    const prefix = `${basename(path, extension)}-`;
    const old = (await readdir(dirname(path))).filter(
      (name) => name.startsWith(prefix) && name.endsWith(extension) && stampOf(name, prefix) !== undefined,
    );
    old.sort().reverse();
    const gone = old.filter((name, index) => {
      const age = clock.nowMs() - (stampOf(name, prefix) ?? 0);
      return (maxBackups > 0 && index >= maxBackups) || (maxDays > 0 && age > maxDays * DAY_MS);
    });
    await Promise.all(gone.map((name) => rm(join(dirname(path), name), { force: true })));
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.#writing;
    await this.#handle?.close();
    this.#handle = undefined;
  }
}

function stampOf(name: string, prefix: string): number | undefined {
  const [, day, hours, minutes, seconds] =
    /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d\.\d{3})/.exec(name.slice(prefix.length)) ?? [];
  return day === undefined ? undefined : Date.parse(`${day}T${hours}:${minutes}:${seconds}Z`);
}
