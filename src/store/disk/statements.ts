import type Database from 'better-sqlite3';
import type { EntryKind } from './port.ts';

export interface RevisionRow {
  readonly revision: number;
  readonly idx: number;
  readonly term: number;
  /** Lease ID as text, because it may exceed the safe integer range. */
  readonly lease: string | null;
  readonly crc: number;
  readonly events: Buffer;
}

export interface EntryRow {
  readonly idx: number;
  readonly term: number;
  readonly kind: EntryKind;
  readonly crc: number;
  readonly body: Buffer;
}

type Place = Pick<RevisionRow, 'revision' | 'idx'>;

export interface Statements {
  readonly insert: Database.Statement<[number, number, number, bigint | null, number, Uint8Array]>;
  readonly insertEntry: Database.Statement<[number, number, number, number, Uint8Array]>;
  readonly one: Database.Statement<[number], RevisionRow>;
  readonly after: Database.Statement<[number], RevisionRow>;
  readonly from: Database.Statement<[number], RevisionRow>;
  readonly entriesFrom: Database.Statement<[number], EntryRow>;
  readonly someEntries: Database.Statement<[number], EntryRow>;
  /** Positions of all rows, newest first. */
  readonly places: Database.Statement<[], Place>;
  readonly lastEntry: Database.Statement<[], Pick<EntryRow, 'idx'>>;
  readonly remove: Database.Statement<[number]>;
  readonly removeFrom: Database.Statement<[number]>;
  readonly removeEntriesFrom: Database.Statement<[number]>;
  readonly removeEntriesUpTo: Database.Statement<[number]>;
  readonly replace: Database.Statement<[number, Buffer, number]>;
  /** Documents that are inserted and removed to leave free pages inside the file. */
  readonly insertReserve: Database.Statement<[string, number]>;
  readonly changeReserve: Database.Statement<[number, string]>;
  readonly removeReserve: Database.Statement<[]>;
}

/** Prefix of the names of the documents that only reserve free pages. */
export const RESERVE = '.aside';

export function prepare(db: Database.Database): Statements {
  const columns = 'SELECT revision, idx, term, CAST(lease AS TEXT) AS lease, crc, events FROM revision';
  return {
    insert: db.prepare('INSERT INTO revision (revision, idx, term, lease, crc, events) VALUES (?, ?, ?, ?, ?, ?)'),
    insertEntry: db.prepare('INSERT INTO entry (idx, term, kind, crc, body) VALUES (?, ?, ?, ?, ?)'),
    one: db.prepare(`${columns} WHERE revision = ?`),
    after: db.prepare(`${columns} WHERE revision > ? ORDER BY revision`),
    from: db.prepare(`${columns} WHERE revision >= ? ORDER BY revision`),
    entriesFrom: db.prepare('SELECT idx, term, kind, crc, body FROM entry WHERE idx >= ? ORDER BY idx'),
    someEntries: db.prepare('SELECT idx, term, kind, crc, body FROM entry WHERE idx >= ? ORDER BY idx LIMIT 100'),
    places: db.prepare('SELECT revision, idx FROM revision ORDER BY revision DESC'),
    lastEntry: db.prepare('SELECT idx FROM entry ORDER BY idx DESC LIMIT 1'),
    remove: db.prepare('DELETE FROM revision WHERE revision = ?'),
    removeFrom: db.prepare('DELETE FROM revision WHERE revision >= ?'),
    removeEntriesFrom: db.prepare('DELETE FROM entry WHERE idx >= ?'),
    removeEntriesUpTo: db.prepare('DELETE FROM entry WHERE idx <= ?'),
    replace: db.prepare('UPDATE revision SET crc = ?, events = ? WHERE revision = ?'),
    insertReserve: db.prepare('INSERT OR REPLACE INTO document (name, value, crc) VALUES (?, randomblob(?), 0)'),
    changeReserve: db.prepare('UPDATE document SET value = randomblob(?) WHERE name = ?'),
    removeReserve: db.prepare(`DELETE FROM document WHERE name LIKE '${RESERVE}%'`),
  };
}
