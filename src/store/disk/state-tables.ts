/**
 * Numbers, documents and leases that the store's file contains in addition to the log, each with its own checksum. All
 * methods are synchronous.
 */
import type Database from 'better-sqlite3';
import { CodedError } from '../../base/errors.ts';
import type { LeaseRecord } from './port.ts';
import { documentChecksum, leaseChecksum, numberChecksum } from './schema.ts';

interface NumberRow {
  readonly name: string;
  readonly value: bigint;
  readonly crc: bigint;
}

interface DocumentRow {
  readonly name: string;
  readonly value: Buffer;
  readonly crc: number;
}

interface LeaseRow {
  readonly id: bigint;
  readonly ttl: bigint;
  readonly remaining: bigint | null;
  readonly crc: bigint;
}

/** Number of leases per step of the checksum verification. */
const PIECE = 1000;
/** Less than every lease id. */
const FIRST_ID = -(2n ** 63n);

export class StateTables {
  readonly #number: Database.Statement<[string], NumberRow>;
  readonly #numbers: Database.Statement<[], NumberRow>;
  readonly #setNumber: Database.Statement<[string, number | bigint, number]>;
  readonly #document: Database.Statement<[string], DocumentRow>;
  readonly #documents: Database.Statement<[], DocumentRow>;
  readonly #setDocument: Database.Statement<[string, Uint8Array, number]>;
  readonly #removeDocument: Database.Statement<[string]>;
  readonly #leases: Database.Statement<[bigint, number], LeaseRow>;
  readonly #grant: Database.Statement<[bigint, number, number | null, number]>;
  readonly #revoke: Database.Statement<[bigint]>;

  constructor(db: Database.Database) {
    const upsert = 'ON CONFLICT DO UPDATE SET value = excluded.value, crc = excluded.crc';
    this.#number = db.prepare<[string], NumberRow>('SELECT name, value, crc FROM meta WHERE name = ?').safeIntegers();
    this.#numbers = db.prepare<[], NumberRow>('SELECT name, value, crc FROM meta').safeIntegers();
    this.#setNumber = db.prepare(`INSERT INTO meta (name, value, crc) VALUES (?, ?, ?) ${upsert}`);
    this.#document = db.prepare('SELECT name, value, crc FROM document WHERE name = ?');
    this.#documents = db.prepare('SELECT name, value, crc FROM document');
    this.#setDocument = db.prepare(`INSERT INTO document (name, value, crc) VALUES (?, ?, ?) ${upsert}`);
    this.#removeDocument = db.prepare('DELETE FROM document WHERE name = ?');
    this.#leases = db
      .prepare<[bigint, number], LeaseRow>(
        'SELECT id, ttl, remaining, crc FROM lease WHERE id >= ? ORDER BY id LIMIT ?',
      )
      .safeIntegers();
    this.#grant = db.prepare('INSERT OR REPLACE INTO lease (id, ttl, remaining, crc) VALUES (?, ?, ?, ?)');
    this.#revoke = db.prepare('DELETE FROM lease WHERE id = ?');
  }

  /**
   * Verifies the indexes. SQLite finds rows by name through an index, which has no checksums: a name that is damaged
   * only in the index would look like a name that was never set. Throws CodedError 'corrupt'.
   */
  requireIndexes(): void {
    for (const { name } of this.#numbers.all())
      if (this.#number.get(name) === undefined) throw damaged(`the index of numbers, at ${name},`);
    for (const { name } of this.#documents.all())
      if (this.#document.get(name) === undefined) throw damaged(`the index of documents, at ${name},`);
  }

  /** Returns undefined if the number was never set. Throws CodedError 'corrupt', as all reading methods do. */
  number(name: string): bigint | undefined {
    const row = this.#number.get(name);
    return row === undefined ? undefined : checkedNumber(row);
  }

  setNumber(name: string, value: number | bigint): void {
    this.#setNumber.run(name, value, numberChecksum(name, value));
  }

  document(name: string): Buffer | undefined {
    const row = this.#document.get(name);
    return row === undefined ? undefined : checkedDocument(row);
  }

  documents(): Map<string, Buffer> {
    return new Map(this.#documents.all().map((row) => [row.name, checkedDocument(row)]));
  }

  setDocument(name: string, value: Uint8Array): void {
    this.#setDocument.run(name, value, documentChecksum(name, value));
  }

  removeDocument(name: string): void {
    this.#removeDocument.run(name);
  }

  leases(): LeaseRecord[] {
    return this.#leases.all(FIRST_ID, Number.MAX_SAFE_INTEGER).map(checkedLease);
  }

  grant({ id, ttlSeconds, remainingSeconds }: LeaseRecord): void {
    const remaining = remainingSeconds ?? null;
    this.#grant.run(id, ttlSeconds, remaining, leaseChecksum(id, ttlSeconds, remaining));
  }

  revoke(id: bigint): void {
    this.#revoke.run(id);
  }

  /** Verifies all checksums in steps. The caller may write between steps. */
  *check(): Generator<void> {
    for (const row of this.#numbers.all()) checkedNumber(row);
    this.documents();
    for (let from = FIRST_ID; ; ) {
      const some = this.#leases.all(from, PIECE).map(checkedLease);
      const last = some.at(-1);
      if (last === undefined) return;
      yield;
      from = last.id + 1n;
    }
  }
}

function checkedNumber({ name, value, crc }: NumberRow): bigint {
  if (numberChecksum(name, value) !== Number(crc)) throw damaged(`the number ${name}`);
  return value;
}

function checkedDocument({ name, value, crc }: DocumentRow): Buffer {
  if (documentChecksum(name, value) !== crc) throw damaged(`the document ${name}`);
  return value;
}

function checkedLease({ id, ttl, remaining, crc }: LeaseRow): LeaseRecord {
  if (leaseChecksum(id, ttl, remaining) !== Number(crc)) throw damaged(`lease ${BigInt.asUintN(64, id).toString(16)}`);
  return {
    id,
    ttlSeconds: Number(ttl),
    ...(remaining === null ? {} : { remainingSeconds: Number(remaining) }),
  };
}

function damaged(what: string): CodedError {
  return new CodedError('corrupt', `${what} is damaged on disk`);
}
