/** Operations of the database thread on the journal file: create, read, extend and remove. All are synchronous. */
import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { CodedError } from '../../../base/errors.ts';
import { unpack } from '../packed-entries.ts';
import type { JournalStretch } from './journal.ts';
import {
  decodeHeader,
  decodeRecord,
  encodeHeader,
  findRecords,
  HEADER_BYTES,
  type JournalRecord,
  type JournalShape,
} from './journal-format.ts';

const MOST_HALF_BYTES = 4 << 20;
const LEAST_HALF_BYTES = 128 << 10;
/** Size of a half as a share of the free disk space. */
const HALF_SHARE = 1 / 64;
/** Limit for preallocation as a share of the free disk space. */
const PREPARED_SHARE = 1 / 64;
/**
 * Zeros that one write of the preallocation appends: one page of the page cache. The kernel would cache a larger write
 * as one larger unit, and each later commit would make the whole unit dirty.
 */
const PIECE = Buffer.alloc(4096);
const STEP_BYTES = 256 << 10;

const FIX =
  'restore a snapshot, or restore the database without the commits in the journal: hyperedge snapshot restore --skip-hash-check revisions.db';

export class JournalFile {
  readonly path: string;
  readonly shape: JournalShape;

  private constructor(path: string, shape: JournalShape) {
    this.path = path;
    this.shape = shape;
  }

  /** Creates a journal. An existing journal is replaced. */
  static make(path: string, id: number): JournalFile {
    const { bavail, bsize } = statfsSync(dirname(path));
    const share = Math.min(MOST_HALF_BYTES, Math.max(LEAST_HALF_BYTES, bavail * bsize * HALF_SHARE));
    const shape = { id, halfBytes: Math.floor(share / HEADER_BYTES) * HEADER_BYTES };
    const fresh = `${path}.new`;
    rmSync(fresh, { force: true });
    const file = openSync(fresh, 'wx', 0o600);
    try {
      writeSync(file, encodeHeader(shape));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(fresh, path);
    flushDirectory(path);
    return new JournalFile(path, shape);
  }

  /**
   * Opens the journal whose id is stored in the database and returns its records after `applied`. Throws CodedError
   * 'corrupt' if the journal is missing, belongs to another database, or lacks a record before the last record. The
   * last record may be torn by a power failure; the records before it were acknowledged.
   */
  static open(
    path: string,
    id: number,
    applied: number,
  ): { readonly file: JournalFile; readonly records: readonly JournalRecord[] } {
    const bytes = readWhole(path);
    const shape = decodeHeader(bytes);
    if (shape?.id !== id) {
      throw new CodedError(
        'corrupt',
        `${path} is ${bytes.length === 0 ? 'missing' : 'damaged, or of another store'}: without it acknowledged commits may be lost; ${FIX}`,
      );
    }
    const records = findRecords(bytes, id, applied);
    for (const [i, { sequence }] of records.entries()) {
      if (sequence === applied + 1 + i) continue;
      throw new CodedError(
        'corrupt',
        `${path} is damaged: ${records.length - i} acknowledged commits follow one that cannot be read; ${FIX}`,
      );
    }
    return { file: new JournalFile(path, shape), records };
  }

  /** Reads consecutive records. Throws CodedError 'corrupt' if an acknowledged record cannot be read. */
  read({ from, to }: JournalStretch): JournalRecord[] {
    const bytes = Buffer.allocUnsafe(to - from);
    const file = openSync(this.path, 'r');
    try {
      for (let done = 0; done < bytes.length; ) {
        const count = readSync(file, bytes, done, bytes.length - done, from + done);
        if (count === 0) break;
        done += count;
      }
    } finally {
      closeSync(file);
    }
    const records: JournalRecord[] = [];
    for (let at = 0; at < bytes.length; ) {
      const record = decodeRecord(bytes, at, this.shape.id);
      if (record === undefined)
        throw new CodedError('corrupt', `${this.path} is damaged at byte ${from + at}; restore a snapshot`);
      records.push(record);
      at = record.end;
    }
    return records;
  }

  /**
   * Extends the file by one step. Returns false if the file has its full length or the disk has too little free space.
   * A write that extends a file, or fills space that is only allocated, causes a commit of the file system's journal,
   * which waits for the writes of other processes. A write into existing space does not. Throws all disk errors except
   * ENOSPC.
   */
  prepare(): boolean {
    // Opened for appending, so that written records cannot be overwritten.
    const file = openSync(this.path, 'a');
    try {
      const whole = HEADER_BYTES + 2 * this.shape.halfBytes;
      if (fstatSync(file).size >= whole) return false;
      const { bavail, bsize } = statfsSync(dirname(this.path));
      if (bavail * bsize * PREPARED_SHARE < whole) return false;
      for (let written = 0; written < STEP_BYTES; written += PIECE.length) writeSync(file, PIECE);
      fdatasyncSync(file);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      return false;
    } finally {
      closeSync(file);
    }
  }

  remove(): void {
    rmSync(this.path, { force: true });
  }
}

/** Last revision in the readable records of a journal; 0 if there is none. */
export function lastRevisionIn(path: string): number {
  const bytes = readWhole(path);
  const shape = decodeHeader(bytes);
  let last = 0;
  if (shape === undefined) return last;
  for (const { body } of findRecords(bytes, shape.id, 0))
    for (const { revision } of unpack(body.entries)) last = Math.max(last, revision);
  return last;
}

function readWhole(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

function flushDirectory(path: string): void {
  const handle = openSync(dirname(path), 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
