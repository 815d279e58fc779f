/**
 * Distinguishes a write-ahead log that a power failure tore, which is normal, from a write-ahead log that the disk
 * damaged. SQLite reads a log up to the first bad frame and silently ignores the rest. This behaviour is correct for a
 * commit that was still being written, but loses acknowledged commits if more frames follow. Format:
 * https://www.sqlite.org/fileformat2.html#the_write_ahead_log
 */
import { readFileSync } from 'node:fs';
import { CodedError } from '../../base/errors.ts';

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** The lowest bit means that checksums cover big-endian words. */
const MAGIC = 0x377f_0682;

/**
 * Must be called before SQLite opens the log, because SQLite empties the log when it closes the database. Throws
 * CodedError 'corrupt' with file, position and fix.
 */
export function checkWriteAheadLog(path: string): void {
  const log = read(path);
  if (log.length < HEADER_BYTES || log.subarray(0, HEADER_BYTES).every((byte) => byte === 0)) return;
  const view = new DataView(log.buffer, log.byteOffset, log.byteLength);
  const frameBytes = FRAME_HEADER_BYTES + view.getUint32(8);
  if (log.length < HEADER_BYTES + frameBytes && view.getUint32(8) <= 65_536) return;
  const little = view.getUint32(0) === MAGIC;
  const sum = new Checksum(view, little);
  sum.add(0, HEADER_BYTES - 8);
  if ((!little && view.getUint32(0) !== MAGIC + 1) || !sum.is(HEADER_BYTES - 8)) {
    throw new CodedError('corrupt', `${path} is damaged at its beginning: restore a snapshot`);
  }
  let readable = HEADER_BYTES;
  let offset = HEADER_BYTES;
  for (; offset + frameBytes <= log.length; offset += frameBytes) {
    if (!isOfThisLog(view, offset)) break;
    sum.add(offset, 8);
    sum.add(offset + FRAME_HEADER_BYTES, frameBytes - FRAME_HEADER_BYTES);
    if (!sum.is(offset + 16)) break;
    if (isCommit(view, offset)) readable = offset + frameBytes;
  }
  const lost = commitsFrom(view, readable, frameBytes);
  // A commit torn by a power failure is the last commit: no frame follows it.
  if (lost === 0) return;
  throw new CodedError(
    'corrupt',
    `${path} is damaged after byte ${readable}: ${lost} acknowledged commits follow; ` +
      `restore a snapshot, or give them up with truncate --size=${readable} on that file`,
  );
}

/** Number of commits that are followed by more frames of the same log, so they had been acknowledged. */
function commitsFrom(view: DataView, start: number, frameBytes: number): number {
  let commits = 0;
  let acknowledged = 0;
  for (let offset = start; offset + frameBytes <= view.byteLength; offset += frameBytes) {
    if (!isOfThisLog(view, offset)) continue;
    acknowledged = commits;
    if (isCommit(view, offset)) commits += 1;
  }
  return acknowledged;
}

/** SQLite overwrites a log from its start with other salts, so frames with other salts belong to the previous log. */
const isOfThisLog = (view: DataView, offset: number): boolean =>
  view.getUint32(offset + 8) === view.getUint32(16) && view.getUint32(offset + 12) === view.getUint32(20);

const isCommit = (view: DataView, offset: number): boolean => view.getUint32(offset + 4) !== 0;

class Checksum {
  readonly #view: DataView;
  readonly #little: boolean;
  #first = 0;
  #second = 0;

  constructor(view: DataView, little: boolean) {
    this.#view = view;
    this.#little = little;
  }

  add(offset: number, length: number): void {
    let first = this.#first;
    let second = this.#second;
    for (let at = offset; at < offset + length; at += 8) {
      first = (first + this.#view.getUint32(at, this.#little) + second) | 0;
      second = (second + this.#view.getUint32(at + 4, this.#little) + first) | 0;
    }
    this.#first = first;
    this.#second = second;
  }

  /** Whether the two words at `offset` equal this checksum. */
  is(offset: number): boolean {
    return this.#view.getInt32(offset) === this.#first && this.#view.getInt32(offset + 4) === this.#second;
  }
}

function read(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Uint8Array();
    throw error;
  }
}
