import type Database from 'better-sqlite3';
import type { LogSize } from '../../components/etcd/port.ts';
import { JOURNAL_BYTES, pragmaNumber } from './open-database.ts';
import { ASIDE, type Statements } from './statements.ts';

const VACUUM_BYTES = 256 << 10;
/** Free pages that are not worth giving back. */
const SPARE_BYTES = 4 << 20;
const JOURNAL_SLACK_BYTES = 32 << 10;

/** The pages of the store's file: how many there are, how many are free, and what is kept free for a full disk. */
export class FileSpace {
  readonly #db: Database.Database;
  readonly #statements: Statements;
  readonly #pageBytes: number;
  /** What `setAside` made free last. */
  #asideBytes = 0;

  constructor(db: Database.Database, statements: Statements) {
    this.#db = db;
    this.#statements = statements;
    // What a crash left of `setAside`.
    statements.removeAside.run();
    this.#pageBytes = pragmaNumber(db, 'page_size');
  }

  /** Without what is set aside. */
  size(): LogSize {
    const pages = pragmaNumber(this.#db, 'page_count');
    const free = pragmaNumber(this.#db, 'freelist_count');
    const aside = Math.min(free * this.#pageBytes, this.#asideBytes);
    return { bytes: pages * this.#pageBytes - aside, inUseBytes: (pages - free) * this.#pageBytes };
  }

  /**
   * Gives some free pages back to the file system; false when there is not enough to be worth it. `all`: down to none.
   */
  vacuumStep(all: boolean): boolean {
    const free = pragmaNumber(this.#db, 'freelist_count');
    const few = free * this.#pageBytes < SPARE_BYTES || free * 2 < pragmaNumber(this.#db, 'page_count');
    if (free === 0 || (!all && few)) return false;
    this.#db.pragma(`incremental_vacuum(${VACUUM_BYTES / this.#pageBytes})`);
    // A file that cannot be made shorter stays as it is.
    return pragmaNumber(this.#db, 'freelist_count') < free;
  }

  /** Free inside the file. */
  get freeBytes(): number {
    return pragmaNumber(this.#db, 'freelist_count') * this.#pageBytes;
  }

  /**
   * Keeps about `bytes` of this file free inside, and SQLite's journal long enough, so that small commits need nothing
   * more of a full disk. Throws SQLITE_FULL when there is no room for that.
   */
  setAside(bytes: number): void {
    const journalBytes = JOURNAL_BYTES - JOURNAL_SLACK_BYTES;
    this.#asideBytes = bytes + journalBytes;
    if (this.freeBytes >= bytes / 2) return;
    const { insertAside, changeAside, removeAside } = this.#statements;
    try {
      // What a row is made of is written, and then free. Changing it in its place puts its former pages into the
      // journal.
      insertAside.run(ASIDE, bytes);
      insertAside.run(`${ASIDE}-journal`, journalBytes);
      changeAside.run(journalBytes, `${ASIDE}-journal`);
    } finally {
      removeAside.run();
    }
  }
}
