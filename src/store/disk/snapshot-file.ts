/**
 * Snapshots as files: a copy of the database with committed data only, in one file without a write-ahead log, followed
 * by its SHA-256 as in etcd's snapshots. All functions are synchronous.
 */
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { SnapshotPosition, SnapshotSummary } from '../administration/port.ts';
import { EventType, splitEvents } from '../core/messages/event.ts';
import { checksum, FIRST_SCHEMA, setJournalInUse } from './schema.ts';
import { checkKind } from './snapshot-kind.ts';
import { StateTables } from './state-tables.ts';
import type { EntryRow, RevisionRow } from './statements.ts';

/** Revision of a store without rows, as in etcd. */
const FIRST_REVISION = 1;

/**
 * Turns a fresh copy into a snapshot as of log index `upTo`: removes entries that may never be committed, and the vote
 * of this member.
 */
export function sealCopy(path: string, upTo: number, nativeBinding: string | undefined): void {
  const db = new Database(path, nativeBinding === undefined ? {} : { nativeBinding });
  try {
    db.pragma('locking_mode = EXCLUSIVE');
    db.pragma('journal_mode = DELETE');
    db.pragma('journal_mode = MEMORY');
    db.pragma('synchronous = OFF');
    db.transaction(() => {
      const state = new StateTables(db);
      const number = (name: string): number => Number(state.number(name) ?? 0n);
      const last = Math.max(upTo, number('applied'), number('base_index'));
      const newest = db.prepare<[], Pick<RevisionRow, 'revision' | 'idx'>>(
        'SELECT revision, idx FROM revision ORDER BY revision DESC',
      );
      let from: number | undefined;
      for (const { revision, idx } of newest.iterate()) {
        if (idx <= last) break;
        from = revision;
      }
      if (from !== undefined) db.prepare('DELETE FROM revision WHERE revision >= ?').run(from);
      db.prepare('DELETE FROM entry WHERE idx > ?').run(last);
      db.prepare("DELETE FROM document WHERE name LIKE '.%'").run();
      state.setNumber('commit', last);
      // The copy contains the journal's records and has no journal.
      db.prepare("DELETE FROM meta WHERE name LIKE 'journal%'").run();
      setJournalInUse(db, false);
      db.pragma('application_id = 0');
    })();
  } finally {
    db.close();
  }
}

/**
 * Reads everything and verifies the checksum of every row. Throws CodedError 'corrupt' or 'unsupported' with the file
 * name.
 */
export function summarizeSnapshot(path: string, nativeBinding: string): SnapshotSummary {
  return reading(path, nativeBinding, (db) => {
    const keys = new Set<string>();
    let hash = 0;
    let revisions = 0;
    let last = 0;
    const rows = db.prepare<[], RevisionRow>('SELECT revision, idx, term, crc, events FROM revision ORDER BY revision');
    for (const { revision, idx, term, crc, events } of rows.iterate()) {
      if (checksum(events, idx, term) !== crc >>> 0) {
        throw new CodedError('corrupt', `${path}: revision ${revision} is damaged; use another snapshot`);
      }
      for (const { key, type } of splitEvents(events)) {
        if (type === EventType.delete) keys.delete(key);
        else keys.add(key);
      }
      hash = crc32(events, hash);
      revisions += 1;
      last = revision;
    }
    for (const { idx, term, crc, body } of db.prepare<[], EntryRow>('SELECT * FROM entry ORDER BY idx').iterate()) {
      if (checksum(body, idx, term) !== crc >>> 0) {
        throw new CodedError('corrupt', `${path}: entry ${idx} of the log is damaged; use another snapshot`);
      }
    }
    // Snapshots of older versions have no further checksums.
    if (Number(db.pragma('user_version', { simple: true })) >= FIRST_SCHEMA) checkState(db, path);
    const compacted = meta(db, 'compacted');
    return {
      revision: Math.max(FIRST_REVISION, last, compacted),
      compacted,
      keys: keys.size,
      revisions,
      hash: hash.toString(16).padStart(8, '0'),
      clusterId: id(db, 'cluster_id'),
      memberId: id(db, 'member_id'),
    };
  });
}

function checkState(db: Database.Database, path: string): void {
  try {
    for (const _ of new StateTables(db).check());
  } catch (error) {
    throw new CodedError('corrupt', `${path}: ${messageOf(error)}; use another snapshot`);
  }
}

/** Last revision and cluster of a snapshot, without verifying the rest. Throws the errors of `summarizeSnapshot`. */
export function snapshotPosition(path: string, nativeBinding: string): SnapshotPosition {
  return reading(path, nativeBinding, (db) => {
    const row = db.prepare<[], { last: number | null }>('SELECT max(revision) AS last FROM revision').get();
    const revision = Math.max(FIRST_REVISION, row?.last ?? 0, meta(db, 'compacted'));
    return { revision, clusterId: id(db, 'cluster_id') };
  });
}

/** Number of rows, from the end, that are searched for an intact row. */
const MOST_DAMAGED = 1000;

/** Last revision that can still be read from a store's own damaged file; undefined if no row can be read. */
export function lastIntactRevision(path: string, nativeBinding: string): number | undefined {
  let db: Database.Database | undefined;
  try {
    db = new Database(path, { readonly: true, fileMustExist: true, nativeBinding });
    const rows = db.prepare<[number], RevisionRow>(
      'SELECT revision, idx, term, crc, events FROM revision ORDER BY revision DESC LIMIT ?',
    );
    for (const { revision, idx, term, crc, events } of rows.iterate(MOST_DAMAGED))
      if (checksum(events, idx, term) === crc >>> 0) return revision;
  } catch {
    // SQLite cannot read the file.
  } finally {
    db?.close();
  }
  return undefined;
}

function reading<T>(path: string, nativeBinding: string, read: (db: Database.Database) => T): T {
  checkKind(path);
  let db: Database.Database | undefined;
  try {
    db = new Database(path, { readonly: true, fileMustExist: true, nativeBinding });
    return read(db);
  } catch (error) {
    if (error instanceof CodedError) throw error;
    throw new CodedError('corrupt', `${path} is damaged or no snapshot: ${messageOf(error)}`, { cause: error });
  } finally {
    db?.close();
  }
}

function meta(db: Database.Database, name: string): number {
  const row = db.prepare<[string], { value: number }>('SELECT value FROM meta WHERE name = ?').get(name);
  return row?.value ?? 0;
}

function id(db: Database.Database, name: string): string {
  const row = db.prepare<[string], { value: bigint }>('SELECT value FROM meta WHERE name = ?').safeIntegers().get(name);
  return BigInt.asUintN(64, row?.value ?? 0n).toString(16);
}
