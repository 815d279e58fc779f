/** Deletes and compresses the rotated files of an audit log in the background. Source: natefinch/lumberjack v2. */
import { createReadStream, createWriteStream } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';

interface OldFilesOptions {
  readonly path: string;
  readonly maxDays: number;
  readonly maxBackups: number;
  readonly compress: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

const DAY_MS = 24 * 3600 * 1000;
const COMPRESSED = '.gz';

export class OldFiles {
  readonly #options: OldFilesOptions;
  readonly #directory: string;
  readonly #prefix: string;
  readonly #extension: string;
  readonly #closing = new AbortController();
  #working: Promise<void> | undefined;
  #again = false;

  constructor(options: OldFilesOptions) {
    this.#options = options;
    this.#directory = dirname(options.path);
    this.#extension = extname(options.path);
    this.#prefix = `${basename(options.path, this.#extension)}-`;
  }

  /** Path of the file that was rotated at this time. */
  nameAt(ms: number): string {
    const stamp = new Date(ms).toISOString().slice(0, 23).replaceAll(':', '-');
    return join(this.#directory, `${this.#prefix}${stamp}${this.#extension}`);
  }

  /** Starts to delete and compress old files in the background. */
  tidy(): void {
    this.#again = true;
    this.#working ??= this.#work();
  }

  /** Aborts the compression in progress; it is repeated after the next rotation. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#working;
  }

  async #work(): Promise<void> {
    while (this.#again && !this.#closing.signal.aborted) {
      this.#again = false;
      try {
        const kept = await this.#removeOld();
        if (!this.#options.compress) continue;
        for (const name of kept) if (!name.endsWith(COMPRESSED)) await this.#compress(join(this.#directory, name));
      } catch (error) {
        if (this.#closing.signal.aborted) break;
        this.#options.log.error('old audit logs not removed', {
          path: this.#options.path,
          error: messageOf(error),
        });
      }
    }
    this.#working = undefined;
  }

  /** Deletes old files and returns the names of the remaining files. */
  async #removeOld(): Promise<string[]> {
    const { clock, maxDays, maxBackups } = this.#options;
    const old = (await readdir(this.#directory)).filter((name) => this.#stampOf(name) !== undefined);
    // A file and its compressed copy count as one file.
    const stems = [...new Set(old.map(stemOf))].sort().reverse();
    const gone = new Set(
      stems.filter((stem, index) => {
        const age = clock.nowMs() - (this.#stampOf(stem) ?? 0);
        return (maxBackups > 0 && index >= maxBackups) || (maxDays > 0 && age > maxDays * DAY_MS);
      }),
    );
    const leaving = old.filter((name) => gone.has(stemOf(name)));
    await Promise.all(leaving.map((name) => rm(join(this.#directory, name), { force: true })));
    return old.filter((name) => !gone.has(stemOf(name)));
  }

  async #compress(path: string): Promise<void> {
    const target = `${path}${COMPRESSED}`;
    try {
      await pipeline(createReadStream(path), createGzip(), createWriteStream(target, { mode: 0o600 }), {
        signal: this.#closing.signal,
      });
    } catch (error) {
      await rm(target, { force: true });
      throw error;
    }
    await rm(path, { force: true });
  }

  #stampOf(name: string): number | undefined {
    const stem = stemOf(name);
    if (!stem.startsWith(this.#prefix) || !stem.endsWith(this.#extension)) return undefined;
    const [, day, hours, minutes, seconds] =
      /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d\.\d{3})/.exec(stem.slice(this.#prefix.length)) ?? [];
    return day === undefined ? undefined : Date.parse(`${day}T${hours}:${minutes}:${seconds}Z`);
  }
}

const stemOf = (name: string): string => (name.endsWith(COMPRESSED) ? name.slice(0, -COMPRESSED.length) : name);
