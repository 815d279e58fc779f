/** The log of revisions on SQLite, on a worker thread of its own. */
import { createReadStream } from 'node:fs';
import { open, readFile, rename, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type {
  LogBatch,
  LogSize,
  LogState,
  PeerUrls,
  SnapshotHead,
  StoredEntry,
  StoredHardState,
  StoreIdentity,
  StoreLog,
} from '../../components/etcd/port.ts';
import { memoryOf, pack, unpack } from './packed-entries.ts';
import type { CommitBody, WorkerAnswers, WorkerReply, WorkerRequest } from './protocol.ts';
import { checkKind, type SnapshotSummary } from './snapshot-kind.ts';

export { checkKind, type SnapshotSummary };

/** Beside the database, where the other members are. */
const OTHERS = 'others.json';

/** Reads a snapshot on a thread of its own and checks the checksum of every row. Throws CodedError 'corrupt', 'unsupported' naming the file. */
export function summarizeSnapshot(path: string, nativeBinding: string): Promise<SnapshotSummary> {
  return askOnce('summarize', { kind: 'summarize', path, nativeBinding });
}

/** The last revision in it, without looking at anything else. Throws as `summarizeSnapshot`. */
export function snapshotRevision(path: string, nativeBinding: string): Promise<number> {
  return askOnce('snapshotRevision', { kind: 'snapshotRevision', path, nativeBinding });
}

/** The last revision of a store's own file, damaged as it may be, whose row is whole; undefined when nothing can be read. Changes nothing that is stored. */
export function lastIntactRevision(path: string, nativeBinding: string): Promise<number | undefined> {
  return askOnce('lastIntact', { kind: 'lastIntact', path, nativeBinding });
}

async function askOnce<K extends WorkerRequest['kind']>(
  _kind: K,
  request: Extract<WorkerRequest, { kind: K }>,
): Promise<WorkerAnswers[K]> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { name: 'sqlite' });
  try {
    return await new Promise((resolve, reject) => {
      worker.once('error', reject);
      worker.once('message', (reply: WorkerReply) => {
        if ('failure' in reply) reject(new CodedError(reply.failure.code, reply.failure.message));
        else resolve(reply.value as WorkerAnswers[K]);
      });
      worker.postMessage({ id: 1, request });
    });
  } finally {
    await worker.terminate();
  }
}

export interface SqliteLogOptions {
  /** The data directory; it exists. Holds `revisions.db`, its write-ahead log, and `owner` with the pid. */
  readonly directory: string;
  /** Path of better-sqlite3's native add-on, where it is not beside its package. */
  readonly nativeBinding?: string;
  /** The worker's entry, where it is not beside this file. */
  readonly workerEntry?: string | URL;
  /** False: nothing is flushed, as etcd's `--unsafe-no-fsync`. */
  readonly flush?: boolean;
  readonly log: Log;
}

/** See `StoreLog` for the contract. The thread starts with `open` and ends with `close`. */
export function createSqliteLog(options: SqliteLogOptions): StoreLog {
  return new SqliteLog(options);
}

interface Pending {
  resolve(value: never): void;
  reject(error: Error): void;
}

class SqliteLog implements StoreLog {
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

  async open(onFatal: (error: Error) => void): Promise<LogState> {
    const { directory, nativeBinding, workerEntry, flush = true } = this.#options;
    this.#dead = undefined;
    this.#onFatal = () => {};
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
      const state = await this.#ask('open', { kind: 'open', directory, nativeBinding, flush });
      this.#onFatal = onFatal;
      return state;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async initialise(identity: StoreIdentity, first: LogBatch): Promise<void> {
    const { body } = packed(first);
    await this.#ask('initialise', { kind: 'initialise', identity, first: body });
  }

  async load(upTo: number, rows: (rows: readonly StoredEntry[]) => void): Promise<void> {
    let reading = this.#ask('load', { kind: 'load', after: 0, upTo });
    for (;;) {
      const some = unpack(await reading);
      const last = some.at(-1);
      if (last === undefined) return;
      // The thread reads on while these are taken over.
      reading = this.#ask('load', { kind: 'load', after: last.revision, upTo });
      reading.catch(() => {});
      rows(some);
    }
  }

  commit(batch: LogBatch): Promise<{ readonly full: boolean }> {
    const { body, memory } = packed(batch);
    return this.#ask('commit', { kind: 'commit', body }, memory);
  }

  recoverSpace(): Promise<boolean> {
    return this.#ask('recoverSpace', { kind: 'recoverSpace' });
  }

  async entries(from: number, maxBytes: number): Promise<readonly StoredEntry[]> {
    return unpack(await this.#ask('entries', { kind: 'entries', from, maxBytes }));
  }

  read(revisions: readonly number[]): Promise<ReadonlyArray<Uint8Array | undefined>> {
    return this.#ask('read', { kind: 'read', revisions });
  }

  async rows(after: number, upTo: number): Promise<readonly StoredEntry[]> {
    return unpack(await this.#ask('rows', { kind: 'rows', after, upTo }));
  }

  hash(revision: number): Promise<number> {
    return this.#ask('hash', { kind: 'hash', revision });
  }

  scrub(after: number): Promise<number> {
    return this.#ask('scrub', { kind: 'scrub', after });
  }

  size(): Promise<LogSize> {
    return this.#ask('size', { kind: 'size' });
  }

  async defragment(): Promise<void> {
    await this.#ask('defragment', { kind: 'defragment' });
  }

  async snapshot(upTo: number): Promise<{ readonly size: number; readonly pieces: AsyncIterable<Uint8Array> }> {
    const path = await this.#ask('snapshot', { kind: 'snapshot', upTo });
    const { size } = await stat(path);
    return { size, pieces: readAndRemove(path) };
  }

  receive(id: string): Promise<number> {
    return this.#ask('receive', { kind: 'receive', id });
  }

  async received(id: string, rows: readonly StoredEntry[]): Promise<void> {
    await this.#ask('received', { kind: 'received', id, rows: pack(rows) });
  }

  install(id: string, head: SnapshotHead, hardState: StoredHardState): Promise<LogState> {
    return this.#ask('install', { kind: 'install', id, head, hardState });
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

  async quarantine(): Promise<string> {
    const { directory } = this.#options;
    const to = join(directory, `revisions.db.damaged-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')}`);
    // The database first: without its write-ahead log it would be taken for a store that knows less.
    for (const suffix of ['', '-wal', '-shm']) {
      await rename(join(directory, `revisions.db${suffix}`), `${to}${suffix}`).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      });
    }
    for (const suffix of ['', '-wal', '-shm']) await rm(join(directory, `incoming.db${suffix}`), { force: true });
    return to;
  }

  async noteOthers(peerUrls: PeerUrls): Promise<void> {
    const known = await this.notedOthers();
    if (known !== undefined && JSON.stringify(known) === JSON.stringify(peerUrls)) return;
    await replaceFile(this.#options.directory, OTHERS, `${JSON.stringify(peerUrls)}\n`);
  }

  async notedOthers(): Promise<PeerUrls | undefined> {
    try {
      const noted: unknown = JSON.parse(await readFile(join(this.#options.directory, OTHERS), 'utf8'));
      return isPeerUrls(noted) ? noted : undefined;
    } catch {
      // Not there, or damaged as the store may be: then nothing is known.
      return undefined;
    }
  }

  #ask<K extends WorkerRequest['kind']>(
    _kind: K,
    request: Extract<WorkerRequest, { kind: K }>,
    memory: ArrayBuffer[] = [],
  ): Promise<WorkerAnswers[K]> {
    const worker = this.#worker;
    if (worker === undefined || this.#dead !== undefined) {
      return Promise.reject(this.#dead ?? new CodedError('closed', 'the log is closed'));
    }
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise<WorkerAnswers[K]>((resolve, reject) => {
      this.#pending.set(id, { resolve: resolve as (value: never) => void, reject });
      worker.postMessage({ id, request }, memory);
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

function isPeerUrls(value: unknown): value is PeerUrls {
  return (
    Array.isArray(value) &&
    value.every((urls) => Array.isArray(urls) && urls.every((url: unknown) => typeof url === 'string'))
  );
}

/** Durably, and as a whole or not at all. */
async function replaceFile(directory: string, name: string, text: string): Promise<void> {
  const path = join(directory, name);
  await writeFile(`${path}.new`, text, { mode: 0o600, flush: true });
  await rename(`${path}.new`, path);
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function packed({ entries, ...rest }: LogBatch): { readonly body: CommitBody; readonly memory: ArrayBuffer[] } {
  const one = pack(entries);
  return { body: { ...rest, entries: one }, memory: memoryOf(one) };
}

async function* readAndRemove(path: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of createReadStream(path, { highWaterMark: 256 << 10 })) yield piece as Buffer;
  } finally {
    await unlink(path);
  }
}
