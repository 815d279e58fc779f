/**
 * The journal's writing end. A commit is one write with O_DSYNC: a put that comes alone costs the disk little more than
 * its own bytes, and its thread is one of libuv's, which no JavaScript has to wake up in.
 */
import { closeSync, constants, openSync, write } from 'node:fs';
import type { LogBatch } from '../../components/etcd/port.ts';
import { encodeRecord, HEADER_BYTES, type JournalShape } from './journal-format.ts';

export interface JournalPlace extends JournalShape {
  readonly path: string;
  /** Of the last record that is in the database. */
  readonly sequence: number;
}

/** A stretch of the file that holds records one after the other. */
export interface JournalStretch {
  readonly from: number;
  readonly to: number;
}

/** What the database is to take over. */
export interface JournalPart {
  readonly stretches: readonly JournalStretch[];
  /** The number of the last record in them. */
  readonly upTo: number;
}

/** Of a half: larger batches are not worth being written twice. */
const LARGEST_SHARE = 2;

interface Half {
  readonly begin: number;
  /** The number of the last record in it. */
  last: number;
}

export class Journal {
  readonly #file: number;
  readonly #place: JournalPlace;
  readonly #halves: readonly [Half, Half];
  #current: Half;
  #at: number;
  #sequence: number;
  /** What is not in the database yet. */
  #stretches: Array<{ readonly from: number; to: number }> = [];

  /** Throws what the file system throws. `flush`: false trusts that the power stays on. */
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

  /** Whether there is room for it in the half that is being filled. */
  hasRoom(record: Buffer): boolean {
    return this.#at + record.length <= this.#current.begin + this.#place.halfBytes;
  }

  /** The last record in the other half: once the database has it, that half may be written over. */
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
   * Resolves when the record is on disk. Rejects with what the disk says; what has been written of it then counts for
   * nothing.
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

  /** A batch that goes to the database directly takes the next number. */
  skip(): void {
    this.#sequence += 1;
  }

  /** Undefined: the database has everything. */
  pending(): JournalPart | undefined {
    if (this.#stretches.length === 0) return undefined;
    return { stretches: this.#stretches.map((each) => ({ ...each })), upTo: this.#sequence };
  }

  /** The database has these. */
  absorbed({ stretches }: JournalPart): void {
    for (const { to } of stretches) {
      const [first] = this.#stretches;
      if (first === undefined) return;
      this.#stretches.shift();
      // It has grown since.
      if (first.to > to) this.#stretches.unshift({ from: to, to: first.to });
    }
  }

  close(): void {
    closeSync(this.#file);
  }
}
