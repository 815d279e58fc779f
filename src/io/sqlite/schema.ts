/** The tables, and how older files come to them. */

import { crc32 } from 'node:zlib';
import type Database from 'better-sqlite3';
import { CodedError } from '../../base/errors.ts';

const SCHEMA_VERSION = 2;

/** Checksums cover the place of an entry in the log too. */
export function checksum(bytes: Uint8Array, index: number, term: number): number {
  return crc32(bytes, (Math.imul(index, 0x9e37_79b1) ^ term) >>> 0);
}

export function createSchema(db: Database.Database, path: string): void {
  const version = Number(db.pragma('user_version', { simple: true }));
  if (version === SCHEMA_VERSION) return;
  if (version > SCHEMA_VERSION) {
    throw new CodedError('unsupported', `${path}: schema ${version} is of a newer version of this program`);
  }
  db.transaction(() => {
    db.exec(version === 0 ? `${REVISION('revision')}; ${STATE}; ${LEASE}; ${META}` : `${REVISION('moved')}; ${STATE}`);
    if (version === 1) migrate(db);
    db.pragma(`user_version = ${SCHEMA_VERSION}`);
  }).immediate();
}

const REVISION = (name: string): string => `
  CREATE TABLE ${name} (revision INTEGER PRIMARY KEY, idx INTEGER NOT NULL, term INTEGER NOT NULL, lease INTEGER, crc INTEGER NOT NULL,
    events BLOB NOT NULL) STRICT`;
const STATE = `
  CREATE TABLE entry (idx INTEGER PRIMARY KEY, term INTEGER NOT NULL, kind INTEGER NOT NULL, crc INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
  CREATE TABLE document (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT`;
const LEASE = 'CREATE TABLE lease (id INTEGER PRIMARY KEY, ttl INTEGER NOT NULL, remaining INTEGER) STRICT';
const META = 'CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT';

/** Version 1 had no log: its rows become the entries of one term, all of them applied. */
function migrate(db: Database.Database): void {
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
