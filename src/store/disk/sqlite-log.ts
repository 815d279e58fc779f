/**
 * The log of revisions: a journal that receives every commit, and behind it SQLite on its own worker thread, which
 * absorbs records from the journal in bulk, outside the commit path.
 */
import { rename, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { CodedError, ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { roomOn } from './ballast.ts';
import { Journal } from './journal/journal.ts';
import type { CommitBody } from './packed-entries.ts';
import { memoryOf, pack, unpack } from './packed-entries.ts';
import { Pending } from './pending.ts';
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
} from './port.ts';
import type { Opening, WorkerAnswers, WorkerReply, WorkerRequest } from './protocol.ts';
import { savedPeers, savePeers } from './saved-peers.ts';
import { SnapshotCopies, type SnapshotReader } from './snapshot-copies.ts';

export interface SqliteLogOptions {
  /** Existing data directory. Contains `revisions.db`, its journals, and `owner` with the pid. */
  readonly directory: string;
  /** Path of better-sqlite3's native add-on, if it is not beside its package. */
  readonly nativeBinding?: string;
  /** Worker script, if it is not beside this file. */
  readonly workerEntry?: string | URL;
  /** False skips all flushes, as etcd's `--unsafe-no-fsync`. */
  readonly flush?: boolean;
  /** The directory contains only a copy of a store's file, or a snapshot. */
  readonly isCopy?: boolean;
  readonly log: Log;
}

/** See `StoreLog` for the contract. The worker thread starts with `open` and ends with `close`. */
export function createSqliteLog(options: SqliteLogOptions): StoreLog {
  return new SqliteLog(options);
}

interface PendingRequest {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** `size` ignores the journal while the journal is smaller than this, or than `SLACK_SHARE` of the database. */
const LEAST_SLACK_BYTES = 2 << 20;
const SLACK_SHARE = 1 / 8;
/** Intervals of the disk space check, when space is scarce and otherwise. */
const POLL_MS = 1_000;
const SELDOM_MS = 60_000;
/**
 * Share of the free space inside the database that is reported as reserve. Pages are not filled completely, and the
 * records in the journal need space there too.
 */
const RESERVE_SHARE = 1 / 4;

class SqliteLog implements StoreLog {
  readonly #options: SqliteLogOptions;
  readonly #requests = new Map<number, PendingRequest>();
  readonly #copies = new SnapshotCopies(async (upTo) => {
    await this.#absorb();
    return this.#request('snapshot', { kind: 'snapshot', upTo });
  });
  #worker: Worker | undefined;
  #journal: Journal | undefined;
  /** Records that are in the journal and not in the database. */
  readonly #pending = new Pending();
  /** Tail of the queue that serializes commits and everything that must not interleave with them. */
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #absorbing: Promise<void> | undefined;
  /** The ballast has been used, or the disk is about to be full. */
  #full = false;
  /** Free bytes inside the database at the last check. */
  #reserveBytes = 0;
  #looking: NodeJS.Timeout | undefined;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #prepared = false;
  /** Last reported level of the cluster's log. */
  #level = 0;
  #exited: Promise<void> | undefined;
  #lastId = 0;
  #onFatal: (error: Error) => void = () => {};
  #dead: CodedError | undefined;

  constructor(options: SqliteLogOptions) {
    this.#options = options;
  }

  async open(onFatal: (error: Error) => void): Promise<LogState> {
    const { directory, nativeBinding, workerEntry, flush = true, isCopy = false } = this.#options;
    this.#dead = undefined;
    this.#onFatal = () => {};
    // The thread keeps no objects between commits, so the usual size of the young generation would only waste memory.
    const worker = new Worker(workerEntry ?? new URL('./sqlite-worker.ts', import.meta.url), {
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
      const opening = await this.#request('open', { kind: 'open', directory, nativeBinding, flush, isCopy });
      const state = this.#begin(opening);
      this.#onFatal = onFatal;
      this.#lookedAtMs = Number.NEGATIVE_INFINITY;
      this.#looking = setInterval(() => void this.#checkSpace(), POLL_MS).unref();
      return state;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  #begin({ state, journal }: Opening): LogState {
    this.#journal?.close();
    this.#journal = new Journal(journal, this.#options.flush ?? true);
    this.#pending.clear();
    this.#full = false;
    this.#prepared = false;
    return state;
  }

  #opened(): Journal {
    if (this.#journal === undefined || this.#dead !== undefined)
      throw this.#dead ?? new CodedError('closed', 'the log is closed');
    return this.#journal;
  }

  async initialise(identity: StoreIdentity, first: LogBatch): Promise<void> {
    await this.#absorb();
    const { body } = packed(first);
    await this.#request('initialise', { kind: 'initialise', identity, first: body });
  }

  async load(upTo: number, rows: (rows: readonly StoredEntry[]) => void): Promise<void> {
    await this.#absorb();
    let reading = this.#request('load', { kind: 'load', after: 0, upTo });
    for (;;) {
      const some = unpack(await reading);
      const last = some.at(-1);
      if (last === undefined) return;
      // The worker thread reads the next rows while this thread processes the current rows.
      reading = this.#request('load', { kind: 'load', after: last.revision, upTo });
      reading.catch(ignore('handled where the rows are awaited'));
      rows(some);
    }
  }

  commit(batch: LogBatch): Promise<{ readonly full: boolean }> {
    return this.#inOrder(() => this.#commit(batch));
  }

  /** Runs `work` after all work queued before it; immediately if the queue is empty. */
  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const result = this.#waiting === 1 ? work() : this.#last.then(work);
    this.#last = result.then(this.#done, this.#done);
    return result;
  }

  readonly #done = (): void => {
    this.#waiting -= 1;
  };

  async #commit(batch: LogBatch): Promise<{ readonly full: boolean }> {
    const journal = this.#opened();
    const record = journal.encode(batch);
    if (!journal.takes(record)) return this.#commitDirectly(batch);
    if (!journal.hasRoom(record)) await this.#turn(journal);
    try {
      await journal.append(record);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return this.#commitDirectly(batch);
      const failure = new CodedError('io', `the journal could not be written: ${messageOf(error)}`);
      this.#die(failure);
      throw failure;
    }
    this.#pending.add(journal.sequence, batch, record);
    if (!this.#prepared) {
      this.#prepared = true;
      void this.#request('prepare', { kind: 'prepare' }).catch(ignore('preparing only saves time later'));
    }
    return { full: this.#full };
  }

  /**
   * Checks the disk space, every second while space is scarce and otherwise once a minute, because refilling the
   * reserve more often would cost more writes than it saves.
   */
  async #checkSpace(): Promise<void> {
    const nowMs = performance.now();
    try {
      const { scarce } = roomOn(await statfs(this.#options.directory));
      if (!scarce && nowMs - this.#lookedAtMs < SELDOM_MS) return;
      this.#lookedAtMs = nowMs;
      const { full, reserveBytes } = await this.#request('checkSpace', { kind: 'checkSpace' });
      this.#reserveBytes = reserveBytes;
      if (full) this.#full = true;
    } catch {
      // The log was closed meanwhile, or the error also appears at the next commit.
    }
  }

  reserveBytes(): number {
    return Math.floor(this.#reserveBytes * RESERVE_SHARE);
  }

  /**
   * Switches to the other half of the journal. Throws CodedError 'no-space' if the database has no room for the records
   * in that half.
   */
  async #turn(journal: Journal): Promise<void> {
    const { lastInOther } = journal;
    while (this.#pending.first <= lastInOther) await this.#absorbMore();
    journal.turn();
    // The commit does not wait until the database has absorbed the previous half.
    this.#absorbMore().catch(ignore('the next commit that needs the space runs into the same error and reports it'));
  }

  /** Commits to the database, for large batches and while the journal cannot grow. */
  async #commitDirectly(batch: LogBatch): Promise<{ readonly full: boolean }> {
    await this.#absorb();
    const journal = this.#opened();
    const { body, memory } = packed(batch);
    const { full } = await this.#request('commit', { kind: 'commit', body, sequence: journal.sequence + 1 }, memory);
    journal.skip();
    this.#full ||= full;
    return { full: this.#full };
  }

  /** Resolves when the database has everything that was committed before the call. Throws CodedError 'no-space'. */
  async #absorb(): Promise<void> {
    const { sequence } = this.#opened();
    while (this.#pending.first <= sequence) await this.#absorbMore();
  }

  #absorbMore(): Promise<void> {
    this.#absorbing ??= this.#absorbPending().finally(() => {
      this.#absorbing = undefined;
    });
    return this.#absorbing;
  }

  async #absorbPending(): Promise<void> {
    const journal = this.#opened();
    const part = journal.pending();
    if (part === undefined) return;
    try {
      const { full } = await this.#request('absorb', { kind: 'absorb', part });
      this.#full ||= full;
    } catch (error) {
      if (error instanceof CodedError && error.code === 'no-space') this.#full = true;
      throw error;
    }
    journal.absorbed(part);
    this.#pending.absorbed(part.upTo);
  }

  async recoverSpace(): Promise<boolean> {
    try {
      await this.#absorb();
    } catch (error) {
      if (error instanceof CodedError && error.code === 'no-space') return false;
      throw error;
    }
    const recovered = await this.#request('recoverSpace', { kind: 'recoverSpace' });
    if (recovered) this.#full = false;
    return recovered;
  }

  async entries(from: number, maxBytes: number): Promise<readonly StoredEntry[]> {
    await this.#absorb();
    return unpack(await this.#request('entries', { kind: 'entries', from, maxBytes }));
  }

  async read(revisions: readonly number[]): Promise<ReadonlyArray<Uint8Array | undefined>> {
    if (revisions.some((revision) => this.#pending.changes(revision))) await this.#absorb();
    const pending = revisions.map((revision) => this.#pending.read(revision));
    const others = revisions.filter((_, i) => pending[i] === undefined);
    if (others.length === 0) return pending;
    const rows = unpack(await this.#request('read', { kind: 'read', revisions: others }));
    let next = 0;
    return revisions.map((revision, i) => {
      const row = rows[next];
      if (pending[i] !== undefined || row?.revision !== revision) return pending[i];
      next += 1;
      return row.body;
    });
  }

  async rows(after: number, upTo: number): Promise<readonly StoredEntry[]> {
    await this.#absorb();
    return unpack(await this.#request('rows', { kind: 'rows', after, upTo }));
  }

  async hash(revision: number): Promise<number> {
    await this.#absorb();
    return this.#request('hash', { kind: 'hash', revision });
  }

  scrub(after: number): Promise<number> {
    return this.#request('scrub', { kind: 'scrub', after });
  }

  /**
   * Size of the database. It omits a small journal: `size` is called every second while there are writes, and absorbing
   * the journal each time would cost flushes that delay other requests.
   */
  async size(): Promise<LogSize> {
    const size = await this.#request('size', { kind: 'size' });
    const { pendingBytes } = this.#opened();
    if (pendingBytes <= Math.max(LEAST_SLACK_BYTES, size.bytes * SLACK_SHARE)) return size;
    await this.#absorb().catch((error: unknown) => {
      // The database then contains all records that fit, so its size is correct.
      if (!(error instanceof CodedError && error.code === 'no-space')) throw error;
    });
    return this.#request('size', { kind: 'size' });
  }

  changeSchema(level: number): Promise<void> {
    this.#level = level;
    return this.#inOrder(async () => {
      await this.#absorb();
      await this.#changeSchema();
    });
  }

  async #changeSchema(): Promise<void> {
    const schema = await this.#request('changeSchema', { kind: 'changeSchema', level: this.#level });
    this.#options.log.v(2, 'store schema set', { schema, level: this.#level });
  }

  async defragment(): Promise<void> {
    await this.#absorb();
    await this.#request('defragment', { kind: 'defragment' });
  }

  snapshot(upTo: number): Promise<SnapshotReader> {
    return this.#copies.read(upTo);
  }

  receive(id: string): Promise<number> {
    return this.#request('receive', { kind: 'receive', id });
  }

  async received(id: string, rows: readonly StoredEntry[]): Promise<void> {
    await this.#request('received', { kind: 'received', id, rows: pack(rows) });
  }

  install(id: string, head: SnapshotHead, hardState: StoredHardState): Promise<LogState> {
    return this.#inOrder(async () => {
      await this.#absorb();
      const { sequence } = this.#opened();
      const state = this.#begin(await this.#request('install', { kind: 'install', id, head, hardState, sequence }));
      await this.#changeSchema();
      return state;
    });
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    clearInterval(this.#looking);
    if (worker === undefined) return;
    if (this.#dead === undefined) await this.#inOrder(() => this.#closeFiles());
    this.#worker = undefined;
    this.#dead ??= new CodedError('closed', 'the log is closed');
    this.#journal?.close();
    this.#journal = undefined;
    await worker.terminate();
    await this.#exited;
  }

  async #closeFiles(): Promise<void> {
    const inOrder = await this.#absorb().then(
      () => true,
      // Records that do not fit into the database stay in the journal and are read at the next start.
      () => false,
    );
    if (this.#dead === undefined) await this.#request('close', { kind: 'close', inOrder });
  }

  async quarantine(): Promise<string> {
    const { directory } = this.#options;
    const to = join(directory, `revisions.db.damaged-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')}`);
    // The database is renamed before its journals. After a crash in between, a database that had lost its journals
    // would look like a store with older data.
    for (const suffix of ['', '-log', '-journal', '-wal', '-shm']) {
      await rename(join(directory, `revisions.db${suffix}`), `${to}${suffix}`).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      });
    }
    for (const suffix of ['', '-journal', '-wal', '-shm'])
      await rm(join(directory, `incoming.db${suffix}`), { force: true });
    return to;
  }

  savePeers(peerUrls: PeerUrls): Promise<void> {
    return savePeers(this.#options.directory, peerUrls);
  }

  savedPeers(): Promise<PeerUrls | undefined> {
    return savedPeers(this.#options.directory);
  }

  #request<K extends WorkerRequest['kind']>(
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
      this.#requests.set(id, { resolve: resolve as (value: unknown) => void, reject });
      worker.postMessage({ id, request }, memory);
    });
  }

  #receive(reply: WorkerReply): void {
    const requested = this.#requests.get(reply.id);
    this.#requests.delete(reply.id);
    if (!('failure' in reply)) {
      requested?.resolve(reply.value);
      return;
    }
    const { code, message, fatal } = reply.failure;
    const error = new CodedError(code, message);
    requested?.reject(error);
    if (fatal) this.#die(error);
  }

  /** Fails the log permanently. After an I/O error no operation is retried. */
  #die(error: CodedError): void {
    if (this.#dead !== undefined) return;
    this.#dead = error;
    this.#options.log.error('store stopped after a disk error', {
      directory: this.#options.directory,
      cause: error.message,
    });
    for (const requested of this.#requests.values()) requested.reject(error);
    this.#requests.clear();
    this.#onFatal(error);
  }
}

function packed({ entries, ...rest }: LogBatch): { readonly body: CommitBody; readonly memory: ArrayBuffer[] } {
  const one = pack(entries);
  return { body: { ...rest, entries: one }, memory: memoryOf(one) };
}
