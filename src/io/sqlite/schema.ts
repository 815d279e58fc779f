/** The tables, and how older files come to them. */

import { crc32 } from 'node:zlib';
import type Database from 'better-sqlite3';
import { CodedError } from '../../base/errors.ts';

export const SCHEMA_VERSION = 3;
/**
 * The same tables, but not all there is: what is missing is in the journal, which programs of version 3 know nothing
 * of.
 */
const WITH_JOURNAL = 4;

export function setJournalInUse(db: Database.Database, inUse: boolean): void {
  db.pragma(`user_version = ${inUse ? WITH_JOURNAL : SCHEMA_VERSION}`);
}

/** Checksums cover the place of an entry in the log too. */
export function checksum(bytes: Uint8Array, index: number, term: number): number {
  return crc32(bytes, (Math.imul(index, 0x9e37_79b1) ^ term) >>> 0);
}

/** Of what stands beside the rows: the name is covered too, so that nothing is taken for something else. */
export function numberChecksum(name: string, value: number | bigint): number {
  return crc32(`${name}=${value}`);
}

export function documentChecksum(name: string, value: Uint8Array): number {
  return crc32(value, crc32(`${name}=`));
}

export function leaseChecksum(id: bigint, ttl: number | bigint, remaining: number | bigint | null): number {
  return crc32(`${id} ${ttl} ${remaining ?? ''}`);
}

export function createSchema(db: Database.Database, path: string): void {
  const version = Number(db.pragma('user_version', { simple: true }));
  if (version === SCHEMA_VERSION || version === WITH_JOURNAL) return;
  if (version > WITH_JOURNAL) {
    throw new CodedError('unsupported', `${path}: schema ${version} is of a newer version of this program`);
  }
  db.transaction(() => {
    if (version === 0) db.exec(`${REVISION('revision')}; ${ENTRY}; ${DOCUMENT}; ${LEASE}; ${META}`);
    if (version === 1) addLog(db);
    if (version === 1 || version === 2) addChecksums(db);
    db.pragma(`user_version = ${SCHEMA_VERSION}`);
  }).immediate();
}

const REVISION = (name: string): string => `
  CREATE TABLE ${name} (revision INTEGER PRIMARY KEY, idx INTEGER NOT NULL, term INTEGER NOT NULL, lease INTEGER, crc INTEGER NOT NULL,
    events BLOB NOT NULL) STRICT`;
const ENTRY = `
  CREATE TABLE entry (idx INTEGER PRIMARY KEY, term INTEGER NOT NULL, kind INTEGER NOT NULL, crc INTEGER NOT NULL, body BLOB NOT NULL) STRICT`;
const DOCUMENT = 'CREATE TABLE document (name TEXT PRIMARY KEY, value BLOB NOT NULL, crc INTEGER NOT NULL) STRICT';
const LEASE = `
  CREATE TABLE lease (id INTEGER PRIMARY KEY, ttl INTEGER NOT NULL, remaining INTEGER, crc INTEGER NOT NULL) STRICT`;
const META = 'CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL, crc INTEGER NOT NULL) STRICT';

/** Version 2 had no checksums of what stands beside the rows: what is there is taken to be right. */
function addChecksums(db: Database.Database): void {
  for (const table of ['document', 'lease', 'meta'])
    db.exec(`ALTER TABLE ${table} ADD COLUMN crc INTEGER NOT NULL DEFAULT 0`);
  db.function('number_checksum', { safeIntegers: true }, (name, value) =>
    numberChecksum(name as string, value as bigint),
  );
  db.function('document_checksum', (name, value) => documentChecksum(name as string, value as Buffer));
  db.function('lease_checksum', { safeIntegers: true }, (id, ttl, remaining) =>
    leaseChecksum(id as bigint, ttl as bigint, remaining as bigint | null),
  );
  db.exec(`
    UPDATE meta SET crc = number_checksum(name, value);
    UPDATE document SET crc = document_checksum(name, value);
    UPDATE lease SET crc = lease_checksum(id, ttl, remaining)`);
}

/** Version 1 had no log: its rows become the entries of one term, all of them applied. */
function addLog(db: Database.Database): void {
  db.exec(`${REVISION('moved')}; ${ENTRY}; CREATE TABLE document (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT`);
  const insert = db.prepare('INSERT INTO moved (revision, idx, term, crc, events) VALUES (?, ?, 1, ?, ?)');
  const rows = db.prepare<[number], { revision: number; crc: number; events: Buffer }>(
    'SELECT revision, crc, events FROM revision WHERE revision > ? ORDER BY revision LIMIT 1000',
  );
  let last = 0;
  for (let some = rows.all(last); some.length > 0; some = rows.all(last)) {
    for (const { revision, crc, events } of some) {
      // What was damaged stays recognisable.
      const bad = crc32(events) === crc ? 0 : 1;
      insert.run(revision, revision, checksum(events, revision, 1) ^ bad, events);
      last = revision;
    }
  }
  const index = Math.max(last, 1);
  db.exec('DROP TABLE revision; ALTER TABLE moved RENAME TO revision; ALTER TABLE lease ADD COLUMN remaining INTEGER');
  const meta = db.prepare('INSERT INTO meta (name, value) VALUES (?, ?)');
  for (const name of ['applied', 'base_index', 'commit']) meta.run(name, index);
  for (const name of ['base_term', 'term']) meta.run(name, 1);
}
