/** Space that is set aside so that what is under way can be finished when the disk is full. */
import { closeSync, fsyncSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** What the journal may hold that the database has no room for. */
const MOST_BYTES = 8 << 20;
/** Of the whole file system. */
const SHARE = 1 / 16;
const PIECE = 64 << 10;

export class Ballast {
  readonly #directory: string;
  readonly #path: string;

  constructor(directory: string) {
    this.#directory = directory;
    this.#path = join(directory, 'ballast');
  }

  /** Puts it there unless it is. False when there is no room; with `spare`, there has to be as much again. Throws what is not about room. */
  put(spare: boolean): boolean {
    const { blocks, bavail, bsize } = statfsSync(this.#directory);
    const wanted = Math.floor(Math.min(MOST_BYTES, blocks * bsize * SHARE) / PIECE) * PIECE;
    const present = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    if (present >= wanted) return true;
    if (bavail * bsize < (wanted - present) * (spare ? 2 : 1)) return false;
    const file = openSync(this.#path, 'a', 0o600);
    try {
      // Not zeros: a file system that compresses would set nothing aside.
      const piece = Buffer.alloc(PIECE);
      for (let i = 0; i < PIECE; i += 4) piece.writeUInt32LE(Math.imul(i + 1, 0x9e37_79b1) >>> 0, i);
      for (let size = present; size < wanted; size += PIECE) writeSync(file, piece);
      fsyncSync(file);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      rmSync(this.#path, { force: true });
      return false;
    } finally {
      closeSync(file);
    }
  }

  /** Gives it up. */
  drop(): void {
    rmSync(this.#path, { force: true });
  }
}
