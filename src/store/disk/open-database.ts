/** Opens the store's SQLite file: settings, exclusive access, tables, and translation of errors. */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { CodedError, messageOf } from '../../base/errors.ts';
import { keepPrivate, noteOwner, ownerOf } from './data-directory.ts';
import { createSchema } from './schema.ts';
import { OWN_FILE } from './snapshot-kind.ts';
import { checkWriteAheadLog } from './write-ahead-log.ts';

/** Older versions can lose a commit when the write-ahead log is reset. Source: SQLite 3.51.3 release notes. */
const OLDEST_SQLITE = [3, 51, 3];
/** Page size of new files. */
const PAGE_BYTES = 1024;
/** Size to which SQLite truncates its rollback journal after a transaction. */
export const JOURNAL_BYTES = 256 << 10;
/** Value of the pragma `auto_vacuum` that selects incremental vacuum. */
const INCREMENTAL = 2;

interface OpenOptions {
  readonly directory: string;
  readonly name: string;
  readonly nativeBinding: string | undefined;
  /** False skips flushing, which risks data loss at a power failure. */
  readonly flush: boolean;
}

/**
 * Opens or creates a file and returns the result of `use`. The lock is exclusive, so a second process is rejected.
 *
 * Commits arrive in bulk from the journal, so SQLite uses a rollback journal instead of a write-ahead log: appended
 * pages are written once instead of twice, and the flushes of its transactions are not in the commit path.
 *
 * Throws CodedError 'in-use', 'unsupported', 'corrupt', 'no-space' or 'unwritable', also for failures of `use`.
 */
export function openDatabase<Opened>(options: OpenOptions, use: (db: Database.Database) => Opened): Opened {
  const { directory, name, nativeBinding, flush } = options;
  const path = join(directory, name);
  let db: Database.Database | undefined;
  try {
    checkWriteAheadLog(`${path}-wal`);
    keepPrivate(path);
    db = new Database(path, { timeout: 1000, ...(nativeBinding === undefined ? {} : { nativeBinding }) });
    checkVersion(db);
    db.pragma(`page_size = ${PAGE_BYTES}`);
    db.pragma('locking_mode = EXCLUSIVE');
    db.pragma(`synchronous = ${flush ? 'FULL' : 'OFF'}`);
    // The change of mode also merges the write-ahead log of an older file into the database. A persistent journal needs
    // no new disk space for later transactions.
    db.pragma('journal_mode = PERSIST');
    db.pragma(`journal_size_limit = ${JOURNAL_BYTES}`);
    if (pragmaNumber(db, 'auto_vacuum') !== INCREMENTAL) db.pragma(`auto_vacuum = ${INCREMENTAL}`);
    // The exclusive transaction takes the lock: from here on, no other process can use the database or the store's
    // journal. The transaction also creates the first page of a new file.
    db.exec('BEGIN EXCLUSIVE; COMMIT');
    db.pragma('cache_size = -4096');
    db.pragma('temp_store = MEMORY');
    createSchema(db, path);
    if (pragmaNumber(db, 'application_id') !== OWN_FILE) db.pragma(`application_id = ${OWN_FILE}`);
    noteOwner(directory);
    return use(db);
  } catch (error) {
    db?.close();
    throw openFailure(error, directory, path);
  }
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

export function pragmaNumber(db: Database.Database, name: string): number {
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
  if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB') {
    return new CodedError('corrupt', `${path} is damaged: ${messageOf(error)}`, { cause: error });
  }
  // SQLITE_ERROR means here that tables are missing which the file's schema version requires.
  if (code === 'SQLITE_ERROR') {
    return new CodedError('corrupt', `${path} is damaged: ${messageOf(error)}`, { cause: error });
  }
  return new CodedError('unwritable', `${path}: ${messageOf(error)}`, { cause: error });
}

/** Extended result code of an SQLite error; '' for other errors. */
export function sqliteCode(error: unknown): string {
  return error instanceof Database.SqliteError ? error.code : '';
}
