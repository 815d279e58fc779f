/**
 * Stores batches of log records as files on tmpfs, up to a total size. A batch also contains the read positions after
 * its records. Therefore a restart of the host process neither loses nor repeats records that were read.
 */
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ifMissing } from '../../base/errors.ts';
import type { Batch, LogRecord, Offsets, Spool } from '../port.ts';

interface Stored {
  readonly offsets: Offsets;
  readonly records: readonly LogRecord[];
}

const OFFSETS = 'offsets.json';
const BATCH = /^(\d{12})-(\d+)\.json$/;

export async function openSpool(directory: string, maxBytes: number): Promise<Spool> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const spool = new FileSpool(directory, maxBytes);
  await spool.load();
  return spool;
}

class FileSpool implements Spool {
  readonly #directory: string;
  readonly maxBytes: number;
  #batches: Batch[] = [];
  #offsets: Record<string, number> = {};
  #next = 1;
  /** ID of the batch that is being sent to the receiver. This batch is never dropped to make room. */
  #sending: string | undefined;

  constructor(directory: string, maxBytes: number) {
    this.#directory = directory;
    this.maxBytes = maxBytes;
  }

  get offsets(): Offsets {
    return this.#offsets;
  }

  get bytes(): number {
    return this.#batches.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  async load(): Promise<void> {
    const text = await readFile(join(this.#directory, OFFSETS), 'utf8').catch(ifMissing('{}'));
    this.#offsets = { ...parsed<Offsets>(text) };
    for (const name of (await readdir(this.#directory)).sort()) {
      const [, sequence, count] = BATCH.exec(name) ?? [];
      if (sequence === undefined) {
        if (name !== OFFSETS) await rm(join(this.#directory, name), { force: true });
        continue;
      }
      const path = join(this.#directory, name);
      const stored = parsed<Stored>(await readFile(path, 'utf8'));
      Object.assign(this.#offsets, stored?.offsets);
      this.#batches.push({ id: name, bytes: pagesOf((await stat(path)).size), count: Number(count) });
      this.#next = Number(sequence) + 1;
    }
  }

  async append(records: readonly LogRecord[], offsets: Offsets): Promise<number> {
    const text = JSON.stringify({ offsets, records } satisfies Stored);
    const bytes = pagesOf(Buffer.byteLength(text));
    const dropped = await this.#makeRoom(bytes);
    const id = `${String(this.#next).padStart(12, '0')}-${records.length}.json`;
    this.#next += 1;
    await this.#write(id, text);
    this.#batches.push({ id, bytes, count: records.length });
    Object.assign(this.#offsets, offsets);
    return dropped;
  }

  async retainOffsets(isPresent: (file: string) => boolean): Promise<void> {
    const kept = Object.fromEntries(Object.entries(this.#offsets).filter(([file]) => isPresent(file)));
    this.#offsets = kept;
    await this.#saveOffsets();
  }

  async oldest(): Promise<{ readonly batch: Batch; readonly records: readonly LogRecord[] } | undefined> {
    for (;;) {
      const [batch] = this.#batches;
      if (batch === undefined) return undefined;
      this.#sending = batch.id;
      const text = await readFile(join(this.#directory, batch.id), 'utf8').catch(ifMissing(''));
      const stored = parsed<Stored>(text);
      if (stored !== undefined && Array.isArray(stored.records)) return { batch, records: stored.records };
      // Another program has deleted or damaged the file, so the batch is skipped.
      await this.remove(batch);
    }
  }

  async remove(batch: Batch): Promise<void> {
    // Save the positions before the batch is deleted, because they would be lost with the batch.
    await this.#saveOffsets();
    await rm(join(this.#directory, batch.id), { force: true });
    this.#batches = this.#batches.filter(({ id }) => id !== batch.id);
    if (this.#sending === batch.id) this.#sending = undefined;
  }

  async #makeRoom(bytes: number): Promise<number> {
    let dropped = 0;
    while (this.bytes + bytes > this.maxBytes) {
      const victim = this.#batches.find(({ id }) => id !== this.#sending);
      if (victim === undefined) break;
      await this.remove(victim);
      dropped += victim.count;
    }
    return dropped;
  }

  async #saveOffsets(): Promise<void> {
    await this.#write(OFFSETS, JSON.stringify(this.#offsets));
  }

  async #write(name: string, text: string): Promise<void> {
    const path = join(this.#directory, name);
    await writeFile(`${path}.new`, text, { mode: 0o600 });
    await rename(`${path}.new`, path);
  }
}

/** Size that a file uses on tmpfs, which allocates whole pages. */
const pagesOf = (bytes: number): number => Math.ceil(bytes / 4096) * 4096;

/** Parses a JSON object; undefined if the text is not a JSON object. */
function parsed<T>(text: string): T | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as T) : undefined;
  } catch {
    return undefined;
  }
}
