/** Tables of the store's file and their migration from older versions. */

import { crc32 } from 'node:zlib';
import type Database from 'better-sqlite3';
import { CodedError } from '../../base/errors.ts';

/** Schema version with which a new file is created. Later schema changes are applied to the new file afterwards. */
export const FIRST_SCHEMA = 3;

/**
 * A change of the tables that older programs cannot read. The change is applied when the level of the cluster's log
 * (see log-level.ts) has reached `level`. Until then the tables stay readable for the older program, so that an update
 * can be rolled back.
 */
export interface SchemaChange {
  /** Must be odd. A file whose journal is in use has the next even version. */
  readonly to: number;
  readonly level: number;
  readonly make: (db: Database.Database) => void;
}

/** Changes, oldest first. No supported program reads tables before `FIRST_SCHEMA`, so these changes have level 0. */
const SCHEMA_CHANGES: readonly SchemaChange[] = [
  { to: 2, level: 0, make: addLog },
  { to: FIRST_SCHEMA, level: 0, make: addChecksums },
];

const versionOf = (db: Database.Database): number => Number(db.pragma('user_version', { simple: true }));

/**
 * Version of the tables apart from the journal. A file with a journal in use has a higher version, so that programs
 * without journal support do not open it and miss the commits in the journal.
 */
const withoutJournal = (version: number): number =>
  version > FIRST_SCHEMA && version % 2 === 0 ? version - 1 : version;

export function setJournalInUse(db: Database.Database, inUse: boolean): void {
  db.pragma(`user_version = ${withoutJournal(versionOf(db)) + (inUse ? 1 : 0)}`);
}

/** The checksum also covers the entry's position in the log. */
export function checksum(bytes: Uint8Array, index: number, term: number): number {
  return crc32(bytes, (Math.imul(index, 0x9e37_79b1) ^ term) >>> 0);
}

/** Checksum of a named value. It covers the name too, so that one value cannot be mistaken for another. */
export function numberChecksum(name: string, value: number | bigint): number {
  return crc32(`${name}=${value}`);
}

export function documentChecksum(name: string, value: Uint8Array): number {
  return crc32(value, crc32(`${name}=`));
}

export function leaseChecksum(id: bigint, ttl: number | bigint, remaining: number | bigint | null): number {
  return crc32(`${id} ${ttl} ${remaining ?? ''}`);
}

/**
 * Creates missing tables and applies the changes that need no level. Throws CodedError 'schema-too-new' for tables of a
 * newer program.
 */
export function createSchema(db: Database.Database, path: string, changes = SCHEMA_CHANGES): void {
  const version = versionOf(db);
  const newest = Math.max(FIRST_SCHEMA, ...changes.map(({ to }) => to));
  if (withoutJournal(version) > newest) {
    throw new CodedError(
      'schema-too-new',
      `${path}: schema ${version} is of a newer version of this program; start the newer version again`,
    );
  }
  if (version === 0) {
    db.transaction(() => {
      db.exec(`${REVISION('revision')}; ${ENTRY}; ${DOCUMENT}; ${LEASE}; ${META}`);
      db.pragma(`user_version = ${FIRST_SCHEMA}`);
    }).immediate();
  }
  changeSchema(db, 0, changes);
}

/** Applies the changes that this level of the cluster's log permits. Returns the version of the tables. */
export function changeSchema(db: Database.Database, level: number, changes = SCHEMA_CHANGES): number {
  for (const change of changes) {
    const version = versionOf(db);
    if (change.level > level || change.to <= withoutJournal(version)) continue;
    db.transaction(() => {
      const inUse = version !== withoutJournal(version);
      change.make(db);
      db.pragma(`user_version = ${change.to + (inUse ? 1 : 0)}`);
    }).immediate();
  }
  return withoutJournal(versionOf(db));
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

/** Adds checksums, which version 2 had only for rows. The existing values are assumed to be correct. */
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

/** Adds the log, which version 1 did not have: the existing rows become log entries of term 1, all of them applied. */
function addLog(db: Database.Database): void {
  db.exec(`${REVISION('moved')}; ${ENTRY}; CREATE TABLE document (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT`);
  const insert = db.prepare('INSERT INTO moved (revision, idx, term, crc, events) VALUES (?, ?, 1, ?, ?)');
  const rows = db.prepare<[number], { revision: number; crc: number; events: Buffer }>(
    'SELECT revision, crc, events FROM revision WHERE revision > ? ORDER BY revision LIMIT 1000',
  );
  let last = 0;
  for (let some = rows.all(last); some.length > 0; some = rows.all(last)) {
    for (const { revision, crc, events } of some) {
      // A damaged row must still fail its checksum after the migration.
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
