/** The write-ahead log as a file, flushed and prepared behind SQLite's back. */
import { closeSync, fdatasyncSync, fstatSync, openSync, statfsSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** A write of the page cache's own unit: larger ones would be kept, and be dirty, as a whole. */
const PIECE = Buffer.alloc(4096);
const STEP_BYTES = 256 << 10;
/** Of the file system's free room. */
const SHARE = 1 / 64;

export class WalFile {
  readonly #path: string;
  /** It stays the same file as long as the database is open. SQLite holds no locks on it that closing this one could release. */
  #file: number | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Whatever has been committed is on the disk afterwards. */
  flush(): void {
    fdatasyncSync(this.#opened());
  }

  /**
   * Makes the file a step longer, up to `bytes`; false when there is nothing more to be done. A write that makes a file longer, or fills room that was only
   * promised, costs a commit of the file system's journal, which waits for what others have written; one into room that is there does not.
   * Zeros behind the log are nothing to SQLite. Throws what the disk throws; a full one is no failure.
   */
  fill(bytes: number): boolean {
    const file = this.#opened();
    if (fstatSync(file).size >= bytes) return false;
    const { bavail, bsize } = statfsSync(dirname(this.#path));
    if (bavail * bsize * SHARE < bytes) return false;
    try {
      for (let written = 0; written < STEP_BYTES; written += PIECE.length) writeSync(file, PIECE);
      fdatasyncSync(file);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      return false;
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  /** Appends only: nothing that SQLite has written can be overwritten. */
  #opened(): number {
    this.#file ??= openSync(this.#path, 'a', 0o600);
    return this.#file;
  }
}
