/**
 * The SQLite file behind the log: schema, commits, and the housekeeping that keeps file and write-ahead log small. Synchronous:
 * it lives on a worker thread. WAL with synchronous=FULL, one flush a commit; exclusive locking, so that a second process is
 * refused and no shared-memory file is needed.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';
import { splitEvents } from '../../api/etcd/event.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Discard, LogSize, LogState } from '../../components/etcd/port.ts';
import type { CommitBody, PackedRows } from './protocol.ts';
import { checkWriteAheadLog } from './write-ahead-log.ts';

const SCHEMA_VERSION = 1;
/** Older ones can lose a commit when the write-ahead log starts over. Source: SQLite 3.51.3 release notes. */
const OLDEST_SQLITE = [3, 51, 3];
const LOAD_BYTES = 1 << 20;
const WAL_BYTES = 4 << 20;
const PAGE_BYTES = 4096;
/** Pages that a small commit touches. */
const COMMIT_PAGES = 2;
const VACUUM_PAGES = 128;
/** Free pages that are not worth giving back. */
const SPARE_PAGES = 1024;

export class RevisionFile {
  readonly #db: Database.Database;
  readonly #statements: Statements;
  readonly #inTransaction: (body: CommitBody) => void;
  /** About what the write-ahead log holds that is not in the database yet. Its file keeps its size when it starts over. */
  #walBytes = 0;

  private constructor(db: Database.Database) {
    this.#db = db;
    this.#statements = prepare(db);
    this.#inTransaction = db.transaction((body: CommitBody) => this.#write(body)).immediate;
  }

  /** Throws CodedError 'in-use', 'unsupported', 'corrupt', 'no-space', 'unwritable'. */
  static open(directory: string, nativeBinding: string | undefined): RevisionFile {
    const path = join(directory, 'revisions.db');
    let db: Database.Database | undefined;
    try {
      checkWriteAheadLog(`${path}-wal`);
      keepPrivate(path);
      db = new Database(path, { timeout: 1000, ...(nativeBinding === undefined ? {} : { nativeBinding }) });
      checkVersion(db);
      db.pragma('locking_mode = EXCLUSIVE');
      db.pragma('auto_vacuum = INCREMENTAL');
      db.pragma('journal_mode = WAL');
      db.pragma('synchronous = FULL');
      db.pragma('wal_autocheckpoint = 0');
      db.pragma('journal_size_limit = 8388608');
      db.pragma('cache_size = -4096');
      db.pragma('temp_store = MEMORY');
      createSchema(db, path);
      noteOwner(directory);
      return new RevisionFile(db);
    } catch (error) {
      db?.close();
      throw openFailure(error, directory, path);
    }
  }

  state(): LogState {
    const number = (name: string): number => Number(this.#statements.getMeta.get(name)?.value ?? 0n);
    const big = (name: string): bigint => this.#statements.getMeta.get(name)?.value ?? 0n;
    return {
      clusterId: big('cluster_id'),
      memberId: big('member_id'),
      compacted: number('compacted'),
      reserved: number('reserved'),
      leases: this.#statements.leases.all().map((row) => ({ id: row.id, ttlSeconds: Number(row.ttl) })),
    };
  }

  /** Rows after a revision, about a megabyte; none at the end. Throws CodedError 'corrupt'. */
  load(after: number): PackedRows {
    const revisions: number[] = [];
    const lengths: number[] = [];
    const pieces: Buffer[] = [];
    let bytes = 0;
    for (const row of this.#statements.after.iterate(after)) {
      verify(row);
      revisions.push(row.revision);
      lengths.push(row.events.length);
      pieces.push(row.events);
      bytes += row.events.length;
      if (bytes >= LOAD_BYTES) break;
    }
    return { revisions, lengths, data: Buffer.concat(pieces) };
  }

  commit(body: CommitBody): void {
    this.#inTransaction(body);
    this.#walBytes += (COMMIT_PAGES + body.discards.length) * PAGE_BYTES + body.rows.data.length * 1.25;
  }

  read(revisions: readonly number[]): Array<Uint8Array | undefined> {
    return revisions.map((revision) => {
      const row = this.#statements.one.get(revision);
      if (row === undefined) return undefined;
      verify(row);
      return row.events;
    });
  }

  /** Folds about a megabyte of rows after `after` and up to `upTo` into a checksum; `done` says there are no more. */
  hashStep(checksum: number, after: number, upTo: number): { checksum: number; after: number; done: boolean } {
    let sum = checksum;
    let last = after;
    let bytes = 0;
    for (const row of this.#statements.after.iterate(after)) {
      if (row.revision > upTo) return { checksum: sum, after: last, done: true };
      verify(row);
      sum = crc32(row.events, sum);
      last = row.revision;
      bytes += row.events.length;
      if (bytes >= LOAD_BYTES) return { checksum: sum, after: last, done: false };
    }
    return { checksum: sum, after: last, done: true };
  }

  size(): LogSize {
    const page = pragmaNumber(this.#db, 'page_size');
    const pages = pragmaNumber(this.#db, 'page_count');
    return { bytes: pages * page, inUseBytes: (pages - pragmaNumber(this.#db, 'freelist_count')) * page };
  }

  /** True when the write-ahead log has grown enough to be worth emptying. */
  get walIsLarge(): boolean {
    return this.#walBytes >= WAL_BYTES;
  }

  /** Moves what the write-ahead log holds into the database; with `shrink`, gives its space back. */
  checkpoint(shrink: boolean): void {
    this.#db.pragma(`wal_checkpoint(${shrink ? 'TRUNCATE' : 'PASSIVE'})`);
    this.#walBytes = 0;
  }

  /** Gives some free pages back to the file system; false when there is not enough to be worth it. `all`: down to none. */
  vacuumStep(all: boolean): boolean {
    const free = pragmaNumber(this.#db, 'freelist_count');
    if (free === 0 || (!all && (free < SPARE_PAGES || free * 2 < pragmaNumber(this.#db, 'page_count')))) return false;
    this.#db.pragma(`incremental_vacuum(${VACUUM_PAGES})`);
    this.#walBytes += VACUUM_PAGES * PAGE_BYTES;
    return true;
  }

  async copyTo(path: string): Promise<void> {
    await this.#db.backup(path);
  }

  close(): void {
    this.#db.close();
  }

  #write(body: CommitBody): void {
    const { insert, setMeta, grant, revoke } = this.#statements;
    const { revisions, lengths, data } = body.rows;
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    for (let i = 0, position = 0; i < revisions.length; i += 1) {
      const end = position + (lengths[i] as number);
      const events = bytes.subarray(position, end);
      insert.run(revisions[i], crc32(events), events);
      position = end;
    }
    for (const lease of body.leasesGranted) grant.run(lease.id, lease.ttlSeconds);
    for (const id of body.leasesRevoked) revoke.run(id);
    for (const discard of body.discards) this.#discard(discard);
    if (body.compacted !== undefined) setMeta.run('compacted', body.compacted);
    if (body.reserved !== undefined) setMeta.run('reserved', body.reserved);
  }

  #discard({ revision, keys }: Discard): void {
    if (keys === undefined) {
      this.#statements.remove.run(revision);
      return;
    }
    const row = this.#statements.one.get(revision);
    if (row === undefined) return;
    verify(row);
    const gone = new Set(keys);
    const left = Buffer.concat(
      splitEvents(row.events)
        .filter((event) => !gone.has(event.key))
        .map((event) => event.field),
    );
    if (left.length === 0) this.#statements.remove.run(revision);
    else this.#statements.replace.run(crc32(left), left, revision);
  }
}

interface Row {
  readonly revision: number;
  readonly crc: number;
  readonly events: Buffer;
}

interface Statements {
  readonly insert: Database.Statement<[unknown, number, Buffer]>;
  readonly one: Database.Statement<[number], Row>;
  readonly after: Database.Statement<[number], Row>;
  readonly remove: Database.Statement<[number]>;
  readonly replace: Database.Statement<[number, Buffer, number]>;
  readonly getMeta: Database.Statement<[string], { value: bigint }>;
  readonly setMeta: Database.Statement<[string, number | bigint]>;
  readonly leases: Database.Statement<[], { id: bigint; ttl: bigint }>;
  readonly grant: Database.Statement<[bigint, number]>;
  readonly revoke: Database.Statement<[bigint]>;
}

function prepare(db: Database.Database): Statements {
  const columns = 'SELECT revision, crc, events FROM revision';
  return {
    insert: db.prepare('INSERT INTO revision (revision, crc, events) VALUES (?, ?, ?)'),
    one: db.prepare(`${columns} WHERE revision = ?`),
    after: db.prepare(`${columns} WHERE revision > ? ORDER BY revision`),
    remove: db.prepare('DELETE FROM revision WHERE revision = ?'),
    replace: db.prepare('UPDATE revision SET crc = ?, events = ? WHERE revision = ?'),
    getMeta: db.prepare<[string], { value: bigint }>('SELECT value FROM meta WHERE name = ?').safeIntegers(),
    setMeta: db.prepare(
      'INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
    ),
    leases: db.prepare<[], { id: bigint; ttl: bigint }>('SELECT id, ttl FROM lease').safeIntegers(),
    grant: db.prepare('INSERT OR REPLACE INTO lease (id, ttl) VALUES (?, ?)'),
    revoke: db.prepare('DELETE FROM lease WHERE id = ?'),
  };
}

function createSchema(db: Database.Database, path: string): void {
  const version = pragmaNumber(db, 'user_version');
  if (version === SCHEMA_VERSION) return;
  if (version !== 0) {
    throw new CodedError('unsupported', `${path}: schema ${version} is of a newer version of this program`);
  }
  db.transaction(() => {
    db.exec(`
      CREATE TABLE revision (revision INTEGER PRIMARY KEY, crc INTEGER NOT NULL, events BLOB NOT NULL) STRICT;
      CREATE TABLE lease (id INTEGER PRIMARY KEY, ttl INTEGER NOT NULL) STRICT;
      CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
    `);
    const identify = db.prepare('INSERT INTO meta (name, value) VALUES (?, ?)');
    identify.run('cluster_id', randomBytes(8).readBigUInt64BE() >> 2n);
    identify.run('member_id', randomBytes(8).readBigUInt64BE() >> 2n);
    db.pragma(`user_version = ${SCHEMA_VERSION}`);
  }).immediate();
}

function checkVersion(db: Database.Database): void {
  const row = db.prepare<[], { version: string }>('SELECT sqlite_version() AS version').get();
  const parts = (row?.version ?? '0').split('.').map(Number);
  for (let i = 0; i < OLDEST_SQLITE.length; i += 1) {
    const difference = (parts[i] ?? 0) - (OLDEST_SQLITE[i] as number);
    if (difference > 0) return;
    if (difference < 0) {
      throw new CodedError(
        'unsupported',
        `SQLite ${row?.version} can lose commits; ${OLDEST_SQLITE.join('.')} or later is needed`,
      );
    }
  }
}

function verify(row: Row): void {
  if (crc32(row.events) !== row.crc) throw new CodedError('corrupt', `revision ${row.revision} is damaged on disk`);
}

function pragmaNumber(db: Database.Database, name: string): number {
  return Number(db.pragma(name, { simple: true }));
}

function openFailure(error: unknown, directory: string, path: string): CodedError {
  if (error instanceof CodedError) return error;
  const code = sqliteCode(error);
  if (code === 'SQLITE_BUSY') {
    return new CodedError('in-use', `${directory} is in use by process ${ownerOf(directory)}; stop it first`);
  }
  if (code === 'SQLITE_FULL' || (error as NodeJS.ErrnoException).code === 'ENOSPC')
    return new CodedError('no-space', `${directory}: no space left on the device`);
  if (code === 'SQLITE_CORRUPT' || code === 'SQLITE_NOTADB') {
    return new CodedError('corrupt', `${path} is damaged: ${messageOf(error)}`, { cause: error });
  }
  return new CodedError('unwritable', `${path}: ${messageOf(error)}`, { cause: error });
}

/** SQLite gives its write-ahead log the mode of the database, which holds every secret of the cluster. */
function keepPrivate(path: string): void {
  closeSync(openSync(path, 'a', 0o600));
  chmodSync(path, 0o600);
}

/** The lock is SQLite's; this only lets the next one say who has it, so a full disk does not matter. */
function noteOwner(directory: string): void {
  try {
    writeFileSync(join(directory, 'owner'), `${process.pid}\n`, { mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

function ownerOf(directory: string): string {
  try {
    return readFileSync(join(directory, 'owner'), 'utf8').trim();
  } catch {
    return 'unknown';
  }
}

/** The extended result code of an SQLite error, '' for others. */
export function sqliteCode(error: unknown): string {
  return error instanceof Database.SqliteError ? error.code : '';
}
