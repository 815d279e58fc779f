/**
 * The writing side of the journal. A commit is one write with O_DSYNC: a single put costs the disk little more than its
 * own bytes. The write runs on a libuv thread, so no JavaScript thread must be woken for it.
 */
import { closeSync, constants, openSync, write } from 'node:fs';
import type { LogBatch } from '../port.ts';
import { encodeRecord, HEADER_BYTES, type JournalShape } from './journal-format.ts';

export interface JournalPlace extends JournalShape {
  readonly path: string;
  /** Sequence number of the last record that is in the database. */
  readonly sequence: number;
}

/** A range of the file that contains consecutive records. */
export interface JournalStretch {
  readonly from: number;
  readonly to: number;
}

/** Records that the database must absorb. */
export interface JournalPart {
  readonly stretches: readonly JournalStretch[];
  /** Sequence number of the last record. */
  readonly upTo: number;
}

/**
 * A record larger than the size of a half divided by this number goes directly to the database, because writing a large
 * record twice is not worth the cost.
 */
const LARGEST_SHARE = 2;

interface Half {
  readonly begin: number;
  /** Sequence number of the last record in this half. */
  last: number;
}

export class Journal {
  readonly #file: number;
  readonly #place: JournalPlace;
  readonly #halves: readonly [Half, Half];
  #current: Half;
  #at: number;
  #sequence: number;
  /** Ranges of records that are not in the database yet. */
  #stretches: Array<{ readonly from: number; to: number }> = [];

  /** Throws file system errors. `flush`: false skips flushing, which risks data loss at a power failure. */
  constructor(place: JournalPlace, flush: boolean) {
    this.#place = place;
    this.#sequence = place.sequence;
    this.#halves = [
      { begin: HEADER_BYTES, last: 0 },
      { begin: HEADER_BYTES + place.halfBytes, last: 0 },
    ];
    this.#current = this.#halves[0];
    this.#at = this.#current.begin;
    this.#file = openSync(place.path, constants.O_RDWR | (flush ? constants.O_DSYNC : 0));
  }

  get sequence(): number {
    return this.#sequence;
  }

  /** Bytes that are not in the database yet. */
  get pendingBytes(): number {
    let bytes = 0;
    for (const { from, to } of this.#stretches) bytes += to - from;
    return bytes;
  }

  encode(batch: LogBatch): Buffer {
    return encodeRecord(this.#place.id, this.#sequence + 1, batch);
  }

  takes(record: Buffer): boolean {
    return record.length <= this.#place.halfBytes / LARGEST_SHARE;
  }

  /** Whether the current half has room for `record`. */
  hasRoom(record: Buffer): boolean {
    return this.#at + record.length <= this.#current.begin + this.#place.halfBytes;
  }

  /** Sequence number of the last record in the other half. Once the database has it, that half may be overwritten. */
  get lastInOther(): number {
    return this.#other.last;
  }

  get #other(): Half {
    return this.#current === this.#halves[0] ? this.#halves[1] : this.#halves[0];
  }

  turn(): void {
    this.#current = this.#other;
    this.#at = this.#current.begin;
  }

  /**
   * Resolves when the record is on disk. Rejects with the file system's error. A partially written record fails its
   * checksum, so it is ignored when the journal is read.
   */
  append(record: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      const writeFrom = (done: number): void => {
        write(this.#file, record, done, record.length - done, this.#at + done, (error, written) => {
          if (error !== null) reject(error);
          else if (done + written < record.length) writeFrom(done + written);
          else {
            this.#appended(record.length);
            resolve();
          }
        });
      };
      writeFrom(0);
    });
  }

  #appended(bytes: number): void {
    const from = this.#at;
    this.#at += bytes;
    this.#sequence += 1;
    this.#current.last = this.#sequence;
    const stretch = this.#stretches.at(-1);
    if (stretch?.to === from && from !== this.#current.begin) stretch.to = this.#at;
    else this.#stretches.push({ from, to: this.#at });
  }

  /** Skips the sequence number of a batch that is committed directly to the database. */
  skip(): void {
    this.#sequence += 1;
  }

  /** Returns the records that are not in the database yet; undefined if there are none. */
  pending(): JournalPart | undefined {
    if (this.#stretches.length === 0) return undefined;
    return { stretches: this.#stretches.map((each) => ({ ...each })), upTo: this.#sequence };
  }

  /** Marks records as absorbed by the database. */
  absorbed({ stretches }: JournalPart): void {
    for (const { to } of stretches) {
      const [first] = this.#stretches;
      if (first === undefined) return;
      this.#stretches.shift();
      // Records were appended to the range meanwhile, so the rest of the range stays.
      if (first.to > to) this.#stretches.unshift({ from: to, to: first.to });
    }
  }

  close(): void {
    closeSync(this.#file);
  }
}
