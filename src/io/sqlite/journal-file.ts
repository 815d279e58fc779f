/** The journal as the database's thread sees it: made, read, prepared and removed. Synchronous. */
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
import { CodedError } from '../../base/errors.ts';
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
import { unpack } from './packed-entries.ts';

const MOST_HALF_BYTES = 4 << 20;
const LEAST_HALF_BYTES = 128 << 10;
/** Of the room that is left, for a half. */
const HALF_SHARE = 1 / 64;
/** Of the room that is left, for what is set aside in advance. */
const PREPARED_SHARE = 1 / 64;
/** A write of the page cache's own unit: larger ones would be kept, and be dirty, as a whole. */
const PIECE = Buffer.alloc(4096);
const STEP_BYTES = 256 << 10;

const FIX =
  'restore a snapshot, or, without what is in the journal, the database: hyperedge snapshot restore --skip-hash-check revisions.db';

export class JournalFile {
  readonly path: string;
  readonly shape: JournalShape;

  private constructor(path: string, shape: JournalShape) {
    this.path = path;
    this.shape = shape;
  }

  /** A new one, in the place of any that is there. */
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
   * The journal of the database that knows `id`, and what is in it behind `applied`. Throws CodedError 'corrupt' when
   * it is missing, another's, or lacks a record that others follow: the last one may be torn by a power cut, those
   * before it were acknowledged.
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

  /**
   * Records that stand one after the other. Throws CodedError 'corrupt': what was acknowledged cannot be read again.
   */
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
   * Makes the file a step longer; false when there is nothing more to be done. A write that makes a file longer, or
   * fills room that was only promised, costs a commit of the file system's journal, which waits for what others have
   * written; one into room that is there does not. Throws what the disk throws; a full one is no failure.
   */
  prepare(): boolean {
    // Appends only: nothing that has been written can be overwritten.
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

/** The last revision of whatever can be read of a journal; 0: nothing. */
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
