import type Database from 'better-sqlite3';
import { JOURNAL_BYTES, pragmaNumber } from './open-database.ts';
import type { LogSize } from './port.ts';
import { RESERVE, type Statements } from './statements.ts';

const VACUUM_BYTES = 256 << 10;
/** Free pages up to this size are not returned to the file system. */
const SPARE_BYTES = 4 << 20;
const JOURNAL_SLACK_BYTES = 32 << 10;

/** Pages of the store's file: number of pages, number of free pages, and the reserve for a full disk. */
export class FileSpace {
  readonly #db: Database.Database;
  readonly #statements: Statements;
  readonly #pageBytes: number;
  /** Size of the reserve that `reserve` created last. */
  #reserveBytes = 0;

  constructor(db: Database.Database, statements: Statements) {
    this.#db = db;
    this.#statements = statements;
    // Removes documents that a crash during `reserve` has left.
    statements.removeReserve.run();
    this.#pageBytes = pragmaNumber(db, 'page_size');
  }

  /** Size of the file without the reserve. */
  size(): LogSize {
    const pages = pragmaNumber(this.#db, 'page_count');
    const free = pragmaNumber(this.#db, 'freelist_count');
    const aside = Math.min(free * this.#pageBytes, this.#reserveBytes);
    return { bytes: pages * this.#pageBytes - aside, inUseBytes: (pages - free) * this.#pageBytes };
  }

  /** Returns some free pages to the file system; false if there are too few. `all`: returns every free page. */
  vacuumStep({ all }: { readonly all: boolean }): boolean {
    const free = pragmaNumber(this.#db, 'freelist_count');
    const few = free * this.#pageBytes < SPARE_BYTES || free * 2 < pragmaNumber(this.#db, 'page_count');
    if (free === 0 || (!all && few)) return false;
    this.#db.pragma(`incremental_vacuum(${VACUUM_BYTES / this.#pageBytes})`);
    // If SQLite could not truncate the file, the count is unchanged, and false stops the caller's loop.
    return pragmaNumber(this.#db, 'freelist_count') < free;
  }

  /** Free bytes inside the file. */
  get freeBytes(): number {
    return pragmaNumber(this.#db, 'freelist_count') * this.#pageBytes;
  }

  /**
   * Keeps about `bytes` free inside the file, and SQLite's journal long enough, so that small commits need no more
   * space on a full disk. Throws SQLITE_FULL if there is no room for it.
   */
  reserve(bytes: number): void {
    const journalBytes = JOURNAL_BYTES - JOURNAL_SLACK_BYTES;
    this.#reserveBytes = bytes + journalBytes;
    if (this.freeBytes >= bytes / 2) return;
    const { insertReserve, changeReserve, removeReserve } = this.#statements;
    try {
      // Inserting and deleting a document leaves its pages free in the file. Updating a document in place extends
      // SQLite's rollback journal, which stores the previous content of the pages.
      insertReserve.run(RESERVE, bytes);
      insertReserve.run(`${RESERVE}-journal`, journalBytes);
      changeReserve.run(journalBytes, `${RESERVE}-journal`);
    } finally {
      removeReserve.run();
    }
  }
}
