/** The log of revisions on SQLite, on a worker thread of its own. */
import { createReadStream } from 'node:fs';
import { stat, unlink } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { LogBatch, LogRow, LogState, RevisionLog } from '../../components/etcd/port.ts';
import type { PackedRows, WorkerAnswers, WorkerReply, WorkerRequest } from './protocol.ts';

export interface SqliteLogOptions {
  /** The data directory; it exists. Holds `revisions.db`, its write-ahead log, and `owner` with the pid. */
  readonly directory: string;
  /** Path of better-sqlite3's native add-on, where it is not beside its package. */
  readonly nativeBinding?: string;
  /** The worker's entry, where it is not beside this file. */
  readonly workerEntry?: string | URL;
  readonly log: Log;
}

/** See `RevisionLog` for the contract. The thread starts with `open` and ends with `close`. */
export function createSqliteLog(options: SqliteLogOptions): RevisionLog {
  return new SqliteLog(options);
}

interface Pending {
  resolve(value: never): void;
  reject(error: Error): void;
}

class SqliteLog implements RevisionLog {
  readonly #options: SqliteLogOptions;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #exited: Promise<void> | undefined;
  #lastId = 0;
  #onFatal: (error: Error) => void = () => {};
  #dead: CodedError | undefined;

  constructor(options: SqliteLogOptions) {
    this.#options = options;
  }

  async open(load: (rows: readonly LogRow[]) => void, onFatal: (error: Error) => void): Promise<LogState> {
    const { directory, nativeBinding, workerEntry } = this.#options;
    // The thread keeps nothing between commits: a young generation of the usual size would only be memory not given back.
    const worker = new Worker(workerEntry ?? new URL('./worker.ts', import.meta.url), {
      name: 'sqlite',
      resourceLimits: { maxYoungGenerationSizeMb: 4 },
    });
    this.#worker = worker;
    worker.on('message', (reply: WorkerReply) => this.#receive(reply));
    worker.on('error', (error) => this.#die(new CodedError('io', `the log's thread failed: ${error.message}`)));
    this.#exited = new Promise((resolve) => {
      worker.once('exit', () => resolve());
    });
    try {
      const state = await this.#ask('open', { kind: 'open', directory, nativeBinding });
      for (let after = 0; ; ) {
        const rows = await this.#ask('load', { kind: 'load', after });
        if (rows.revisions.length === 0) break;
        load(unpack(rows));
        after = rows.revisions.at(-1) ?? after;
      }
      this.#onFatal = onFatal;
      return state;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async commit(batch: LogBatch): Promise<void> {
    const rows = pack(batch.rows);
    const { leasesGranted, leasesRevoked, discards, compacted, reserved } = batch;
    const body = { rows, leasesGranted, leasesRevoked, discards, compacted, reserved };
    await this.#ask('commit', { kind: 'commit', body }, rows.data.buffer as ArrayBuffer);
  }

  read(revisions: readonly number[]): Promise<ReadonlyArray<Uint8Array | undefined>> {
    return this.#ask('read', { kind: 'read', revisions });
  }

  hash(revision: number): Promise<number> {
    return this.#ask('hash', { kind: 'hash', revision });
  }

  size(): Promise<{ readonly bytes: number; readonly inUseBytes: number }> {
    return this.#ask('size', { kind: 'size' });
  }

  async defragment(): Promise<void> {
    await this.#ask('defragment', { kind: 'defragment' });
  }

  async snapshot(): Promise<{ readonly size: number; readonly pieces: AsyncIterable<Uint8Array> }> {
    const path = await this.#ask('snapshot', { kind: 'snapshot' });
    const { size } = await stat(path);
    return { size, pieces: readAndRemove(path) };
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    if (this.#dead === undefined) await this.#ask('close', { kind: 'close' });
    this.#worker = undefined;
    this.#dead ??= new CodedError('closed', 'the log is closed');
    await worker.terminate();
    await this.#exited;
  }

  #ask<K extends WorkerRequest['kind']>(
    _kind: K,
    request: Extract<WorkerRequest, { kind: K }>,
    transfer?: ArrayBuffer,
  ): Promise<WorkerAnswers[K]> {
    const worker = this.#worker;
    if (worker === undefined || this.#dead !== undefined) {
      return Promise.reject(this.#dead ?? new CodedError('closed', 'the log is closed'));
    }
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise<WorkerAnswers[K]>((resolve, reject) => {
      this.#pending.set(id, { resolve: resolve as (value: never) => void, reject });
      worker.postMessage({ id, request }, transfer === undefined ? [] : [transfer]);
    });
  }

  #receive(reply: WorkerReply): void {
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if (!('failure' in reply)) {
      pending?.resolve(reply.value as never);
      return;
    }
    const { code, message, fatal } = reply.failure;
    const error = new CodedError(code, message);
    pending?.reject(error);
    if (fatal) this.#die(error);
  }

  /** An I/O error is never tried again as if nothing had happened. */
  #die(error: CodedError): void {
    if (this.#dead !== undefined) return;
    this.#dead = error;
    this.#options.log.error('the disk cannot be trusted any more', {
      directory: this.#options.directory,
      cause: error.message,
    });
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
    this.#onFatal(error);
  }
}

function pack(rows: readonly LogRow[]): PackedRows {
  let bytes = 0;
  for (const row of rows) bytes += row.events.length;
  // Its own memory: it is handed over to the thread.
  const data = new Uint8Array(new ArrayBuffer(bytes));
  let position = 0;
  for (const row of rows) {
    data.set(row.events, position);
    position += row.events.length;
  }
  return { revisions: rows.map((row) => row.revision), lengths: rows.map((row) => row.events.length), data };
}

function unpack({ revisions, lengths, data }: PackedRows): LogRow[] {
  let position = 0;
  return revisions.map((revision, i) => {
    const start = position;
    position += lengths[i] as number;
    return { revision, events: data.subarray(start, position) };
  });
}

async function* readAndRemove(path: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of createReadStream(path, { highWaterMark: 256 << 10 })) yield piece as Buffer;
  } finally {
    await unlink(path);
  }
}
