/**
 * Disk space reserved in a file, so that work in progress can be completed when the disk is full, and thresholds for
 * free disk space. A second reserve, `FileSpace.reserve`, is inside the database, where other programs cannot take it.
 */
import { closeSync, fsyncSync, openSync, rmSync, type StatsFs, statfsSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Maximum size of the ballast: the maximum size of the journal, whose records must fit into the database even on a full
 * disk.
 */
const MOST_BYTES = 8 << 20;
/** Limit for the ballast as a share of the file system. */
const SHARE = 1 / 16;
const PIECE = 64 << 10;
/** The disk counts as full when its free space is below this share of the ballast's size. */
const FULL_SHARE = 1 / 2;
/** Disk space counts as scarce below this share of the file system. */
const SCARCE_SHARE = 1 / 4;
/** Limit for the reserve inside the database as a share of the file system. */
const RESERVE_SHARE = 1 / 32;
const MAX_RESERVE_BYTES = 4 << 20;

export interface Room {
  /** Whether the disk counts as full. Writes that can wait are then stopped. */
  readonly full: boolean;
  /** The disk may become full before the next check. */
  readonly scarce: boolean;
  /** Size of the reserve inside the database. */
  readonly reserveBytes: number;
}

export function roomOn(disk: StatsFs): Room {
  const { totalBytes, freeBytes } = sizesOf(disk);
  return {
    full: freeBytes < sizeFor(totalBytes) * FULL_SHARE,
    scarce: freeBytes < totalBytes * SCARCE_SHARE,
    reserveBytes: Math.floor(Math.min(MAX_RESERVE_BYTES, totalBytes * RESERVE_SHARE)),
  };
}

/** Sizes as this process may use them: file systems can reserve a part of the free space for root. */
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
   * Creates the ballast if it is missing or too small. Returns false if the disk has too little free space. With
   * `spare`, as much space as the ballast takes must remain free as well. Throws all errors except ENOSPC.
   */
  put({ spare }: { readonly spare: boolean }): boolean {
    const { totalBytes, freeBytes } = sizesOf(statfsSync(this.#directory));
    const wanted = sizeFor(totalBytes);
    const present = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    if (spare && freeBytes < wanted) return false;
    if (present >= wanted) return true;
    if (freeBytes < (wanted - present) * (spare ? 2 : 1)) return false;
    const file = openSync(this.#path, 'a', 0o600);
    try {
      // The content is pseudo-random, because a compressing file system would reserve no space for zeros.
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

  /** Releases the reserved space. */
  drop(): void {
    rmSync(this.#path, { force: true });
  }
}

const sizeFor = (totalBytes: number): number => Math.floor(Math.min(MOST_BYTES, totalBytes * SHARE) / PIECE) * PIECE;
