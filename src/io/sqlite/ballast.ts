/**
 * Space that is set aside so that what is under way can be finished when the disk is full, and what is left of the disk
 * beside it. What the database keeps in itself for the time after that is `FileSpace.setAside`: other programs cannot
 * take it.
 */
import { closeSync, fsyncSync, openSync, rmSync, type StatsFs, statfsSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** What the journal may hold that the database has no room for. */
const MOST_BYTES = 8 << 20;
/** Of the whole file system. */
const SHARE = 1 / 16;
const PIECE = 64 << 10;
/** Of the ballast's size: with less than this free the disk counts as full. */
const FULL_SHARE = 1 / 2;
/** Of the file system. */
const SCARCE_SHARE = 1 / 4;
/** Of the file system. */
const ASIDE_SHARE = 1 / 32;
const MOST_ASIDE_BYTES = 4 << 20;

export interface Room {
  /** Nothing that can wait is written any more. */
  readonly full: boolean;
  /** It may be full before it is looked at again. */
  readonly scarce: boolean;
  /** What the database sets aside in itself. */
  readonly asideBytes: number;
}

export function roomOn(disk: StatsFs): Room {
  const { totalBytes, freeBytes } = sizesOf(disk);
  return {
    full: freeBytes < sizeFor(totalBytes) * FULL_SHARE,
    scarce: freeBytes < totalBytes * SCARCE_SHARE,
    asideBytes: Math.floor(Math.min(MOST_ASIDE_BYTES, totalBytes * ASIDE_SHARE)),
  };
}

/** Of what this process may use: some of it is root's alone. */
function sizesOf({ blocks, bfree, bavail, bsize }: StatsFs): {
  readonly totalBytes: number;
  readonly freeBytes: number;
} {
  return { totalBytes: blocks * bsize, freeBytes: (process.geteuid?.() === 0 ? bfree : bavail) * bsize };
}

export class Ballast {
  readonly #directory: string;
  readonly #path: string;

  constructor(directory: string) {
    this.#directory = directory;
    this.#path = join(directory, 'ballast');
  }

  room(): Room {
    return roomOn(statfsSync(this.#directory));
  }

  /**
   * Puts it there unless it is. False when there is no room; with `spare`, there has to be as much again. Throws what
   * is not about room.
   */
  put(spare: boolean): boolean {
    const { totalBytes, freeBytes } = sizesOf(statfsSync(this.#directory));
    const wanted = sizeFor(totalBytes);
    const present = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    if (spare && freeBytes < wanted) return false;
    if (present >= wanted) return true;
    if (freeBytes < (wanted - present) * (spare ? 2 : 1)) return false;
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

const sizeFor = (totalBytes: number): number => Math.floor(Math.min(MOST_BYTES, totalBytes * SHARE) / PIECE) * PIECE;
