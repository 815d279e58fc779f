/** The SQLite file behind the log. Most methods are synchronous, because they run on a worker thread. */
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';
import { splitEvents } from '../core/messages/event.ts';
import { createPrivate } from './data-directory.ts';
import { FileSpace } from './file-space.ts';
import { LogMap } from './log-map.ts';
import { fromEntry, fromRevision } from './log-rows.ts';
import { openDatabase } from './open-database.ts';
import type { CommitBody } from './packed-entries.ts';
import { firstIndex, type PackedEntries, pack, unpack } from './packed-entries.ts';
import {
  type AppliedChanges,
  type Discard,
  EntryKind,
  type LogPosition,
  type LogState,
  type SnapshotHead,
  type StoredEntry,
  type StoredHardState,
  type StoreIdentity,
} from './port.ts';
import { changeSchema, checksum, setJournalInUse } from './schema.ts';
import { StateTables } from './state-tables.ts';
import { prepare, type Statements } from './statements.ts';

const PIECE_BYTES = 1 << 20;
const STORE_FILE_NAME = 'revisions.db';

export class StoreFile {
  readonly #db: Database.Database;
  readonly #statements: Statements;
  readonly #state: StateTables;
  readonly #inTransaction: (bodies: readonly CommitBody[], sequence: number) => void;
  /** Maps log indexes above the log's base to the revisions of their rows. */
  #map = new LogMap(0);
  #lastIndex = 0;
  readonly space: FileSpace;

  private constructor(db: Database.Database) {
    this.#db = db;
    this.#statements = prepare(db);
    this.#state = new StateTables(db);
    this.#state.requireIndexes();
    this.space = new FileSpace(db, this.#statements);
    this.#inTransaction = db.transaction((bodies: readonly CommitBody[], sequence: number) => {
      for (const body of bodies) this.#write(body);
      this.#state.setNumber(JOURNAL_SEQUENCE, sequence);
    }).immediate;
    this.#readMap();
  }

  /** Sets the positions of the log from the tables. */
  #readMap(): void {
    const base = this.#number('base_index');
    const map = new LogMap(base);
    const newest: Array<{ revision: number; idx: number }> = [];
    for (const place of this.#statements.places.iterate()) {
      if (place.idx <= base) break;
      newest.push(place);
    }
    for (const { revision, idx } of newest.reverse()) map.add(idx, revision);
    this.#map = map;
    this.#lastIndex = Math.max(base, map.last, this.#statements.lastEntry.get()?.idx ?? 0);
  }

  /**
   * Throws CodedError 'in-use', 'unsupported', 'schema-too-new', 'corrupt', 'no-space' or 'unwritable'. `flush`: false
   * skips flushing, which risks data loss at a power failure.
   */
  static open(directory: string, nativeBinding: string | undefined, flush: boolean, name = STORE_FILE_NAME): StoreFile {
    return openDatabase({ directory, name, nativeBinding, flush }, (db) => new StoreFile(db));
  }

  state(): LogState {
    const state = this.#state;
    const clusterId = state.number('cluster_id');
    const memberId = state.number('member_id');
    const documents = state.documents();
    const vote = documents.get(VOTE)?.toString();
    documents.delete(VOTE);
    return {
      identity:
        clusterId === undefined || memberId === undefined
          ? undefined
          : { clusterId: BigInt.asUintN(64, clusterId), memberId: BigInt.asUintN(64, memberId) },
      hardState: { term: this.#number('term'), vote: vote === '' ? undefined : vote, commit: this.#number('commit') },
      base: { index: this.#number('base_index'), term: this.#number('base_term') },
      applied: this.#number('applied'),
      compacted: this.#number('compacted'),
      reserved: this.#number('reserved'),
      leases: state.leases(),
      documents,
    };
  }

  #number(name: string): number {
    return Number(this.#state.number(name) ?? 0n);
  }

  initialise(identity: StoreIdentity, first: CommitBody): void {
    this.#db
      .transaction(() => {
        this.#state.setNumber('cluster_id', BigInt.asIntN(64, identity.clusterId));
        this.#state.setNumber('member_id', BigInt.asIntN(64, identity.memberId));
        this.#write(first);
      })
      .immediate();
  }

  /** Id of the journal in front of this file; undefined if the file was closed cleanly and contains everything. */
  get journalId(): number | undefined {
    const id = this.#number(JOURNAL_ID);
    return id === 0 ? undefined : id;
  }

  /** Sequence number of the last journal record that this file contains. */
  get sequence(): number {
    return this.#number(JOURNAL_SEQUENCE);
  }

  /** Marks the file as incomplete without the journal `id`; undefined marks it as complete. */
  setJournal(id: number | undefined): void {
    this.#db
      .transaction(() => {
        this.#state.setNumber(JOURNAL_ID, id ?? 0);
        setJournalInUse(this.#db, id !== undefined);
      })
      .immediate();
  }

  /**
   * About a megabyte of rows with revisions above `after`, up to revision `upTo` and index `upToIndex`; empty at the
   * end. Throws CodedError 'corrupt'.
   */
  rows(after: number, upTo: number, upToIndex = Number.MAX_SAFE_INTEGER): PackedEntries {
    const found: StoredEntry[] = [];
    let bytes = 0;
    for (const row of this.#statements.after.iterate(after)) {
      if (row.revision > upTo || row.idx > upToIndex) break;
      found.push(fromRevision(row));
      bytes += row.events.length;
      if (bytes >= PIECE_BYTES) break;
    }
    return pack(found);
  }

  /** Log entries in index order. */
  entries(from: number, maxBytes: number): PackedEntries {
    const found: StoredEntry[] = [];
    const start = this.#map.revisionFrom(from);
    if (from <= this.#map.base || from > this.#lastIndex) return pack(found);
    const revisions = start === undefined ? [][Symbol.iterator]() : this.#statements.from.iterate(start);
    const others = this.#statements.entriesFrom.iterate(from);
    try {
      let revision = revisions.next();
      let other = others.next();
      for (let bytes = 0, index = from; bytes < maxBytes || found.length === 0; index += 1) {
        let entry: StoredEntry;
        if (!revision.done && revision.value.idx === index) {
          entry = fromRevision(revision.value);
          revision = revisions.next();
        } else if (!other.done && other.value.idx === index) {
          entry = fromEntry(other.value);
          other = others.next();
        } else break;
        found.push(entry);
        bytes += entry.body.length + 16;
      }
    } finally {
      revisions.return?.();
      others.return?.();
    }
    return pack(found);
  }

  /** Commits batches in order. `sequence` is the sequence number of the last batch. */
  commit(bodies: readonly CommitBody[], sequence: number): void {
    try {
      this.#inTransaction(bodies, sequence);
    } catch (error) {
      // The rollback restored the tables. With the positions of the failed commit, a retry would keep rows that it has
      // to remove.
      this.#readMap();
      throw error;
    }
  }

  /** Rows of the given revisions that exist, in the requested order. Throws CodedError 'corrupt'. */
  read(revisions: readonly number[]): PackedEntries {
    const found: StoredEntry[] = [];
    for (const revision of revisions) {
      const row = this.#statements.one.get(revision);
      if (row !== undefined) found.push(fromRevision(row));
    }
    return pack(found);
  }

  /** Adds about a megabyte of rows after `after` and up to `upTo` to a checksum. `done` is set at the last row. */
  hashStep(sumSoFar: number, after: number, upTo: number): { checksum: number; after: number; done: boolean } {
    let sum = sumSoFar;
    let last = after;
    let bytes = 0;
    for (const row of this.#statements.after.iterate(after)) {
      if (row.revision > upTo) return { checksum: sum, after: last, done: true };
      sum = crc32(fromRevision(row).body, sum);
      last = row.revision;
      bytes += row.events.length;
      if (bytes >= PIECE_BYTES) return { checksum: sum, after: last, done: false };
    }
    return { checksum: sum, after: last, done: true };
  }

  /**
   * Verifies the checksums of all tables except the revision rows in steps. The caller may write between steps. Throws
   * CodedError 'corrupt'.
   */
  *checkState(): Generator<void> {
    yield* this.#state.check();
    for (let from = 0; ; ) {
      const some = this.#statements.someEntries.all(from).map(fromEntry);
      const last = some.at(-1);
      if (last === undefined) return;
      yield;
      from = last.index + 1;
    }
  }

  /** Applies the table changes that this level of the cluster's log permits. */
  changeSchema(level: number): number {
    return changeSchema(this.#db, level);
  }

  /** Copies the file to `path`. Only the owner may read the copy. */
  async copyTo(path: string): Promise<void> {
    createPrivate(path);
    await this.#db.backup(path);
  }

  close(): void {
    try {
      // SQLite removes its journal while it still holds the lock, so no other process can intervene.
      this.#db.pragma('locking_mode = NORMAL');
      this.#db.pragma('journal_mode = DELETE');
    } catch (error) {
      // SQLite could not remove its journal. The remaining journal is empty and unused.
      if (!(error instanceof Database.SqliteError)) throw error;
    }
    this.#db.close();
  }

  /** Id of the snapshot that is being received into this file, and its last revision so far. */
  get incoming(): { readonly id: string; readonly last: number } | undefined {
    const id = this.#state.document(INCOMING)?.toString();
    return id === undefined ? undefined : { id, last: this.#statements.places.get()?.revision ?? 0 };
  }

  beginIncoming(id: string): void {
    this.#state.setDocument(INCOMING, Buffer.from(id));
  }

  addIncoming(rows: PackedEntries): void {
    this.#db.transaction(() => this.#append(rows)).immediate();
  }

  /** Turns a completely received snapshot into the store of a member. */
  finishIncoming(
    identity: StoreIdentity,
    head: SnapshotHead,
    hardState: StoredHardState,
    journal: { readonly id: number; readonly sequence: number },
  ): void {
    const { position } = head;
    this.#db
      .transaction(() => {
        this.#state.setNumber(JOURNAL_ID, journal.id);
        this.#state.setNumber(JOURNAL_SEQUENCE, journal.sequence);
        setJournalInUse(this.#db, true);
        this.#state.removeDocument(INCOMING);
        this.#state.setNumber('cluster_id', BigInt.asIntN(64, identity.clusterId));
        this.#state.setNumber('member_id', BigInt.asIntN(64, identity.memberId));
        this.#state.setNumber('reserved', head.revision);
        this.#setBase(position);
        this.#setHardState(hardState);
        this.#setApplied({
          index: position.index,
          compacted: head.compacted,
          leasesGranted: head.leases,
          leasesRevoked: [],
          documents: head.documents,
        });
      })
      .immediate();
  }

  #write(body: CommitBody): void {
    const first = firstIndex(body.entries);
    if (first !== undefined) {
      this.#truncate(first);
      this.#append(body.entries);
    }
    for (const discard of body.discards) this.#discard(discard);
    if (body.hardState !== undefined) this.#setHardState(body.hardState);
    if (body.applied !== undefined) this.#setApplied(body.applied);
    if (body.base !== undefined) this.#setBase(body.base);
    if (body.reserved !== undefined) this.#state.setNumber('reserved', body.reserved);
  }

  /** Removes all entries from `index`. */
  #truncate(index: number): void {
    if (index > this.#lastIndex) return;
    const revision = this.#map.revisionFrom(index);
    if (revision !== undefined) this.#statements.removeFrom.run(revision);
    this.#statements.removeEntriesFrom.run(index);
    this.#map.truncate(index);
    this.#lastIndex = index - 1;
  }

  #append(packed: PackedEntries): void {
    const { insert, insertEntry } = this.#statements;
    for (const { index, term, kind, revision, lease, body } of unpack(packed)) {
      const crc = checksum(body, index, term);
      if (revision > 0) {
        insert.run(revision, index, term, kind === EntryKind.revoke ? lease : null, crc, body);
        this.#map.add(index, revision);
      } else insertEntry.run(index, term, kind, crc, body);
      this.#lastIndex = index;
    }
  }

  #setHardState({ term, vote, commit }: StoredHardState): void {
    this.#state.setNumber('term', term);
    this.#state.setNumber('commit', commit);
    this.#state.setDocument(VOTE, Buffer.from(vote ?? ''));
  }

  #setBase({ index, term }: LogPosition): void {
    this.#state.setNumber('base_index', index);
    this.#state.setNumber('base_term', term);
    this.#statements.removeEntriesUpTo.run(index);
    this.#map.moveBase(index);
    this.#lastIndex = Math.max(this.#lastIndex, index);
  }

  #setApplied(applied: AppliedChanges): void {
    const state = this.#state;
    state.setNumber('applied', applied.index);
    state.setNumber('compacted', applied.compacted);
    for (const lease of applied.leasesGranted) state.grant(lease);
    for (const id of applied.leasesRevoked) state.revoke(id);
    for (const [name, value] of applied.documents) state.setDocument(name, value);
  }

  #discard({ revision, keys }: Discard): void {
    if (keys === undefined) {
      this.#statements.remove.run(revision);
      return;
    }
    const row = this.#statements.one.get(revision);
    if (row === undefined) return;
    const gone = new Set(keys);
    const left = Buffer.concat(
      splitEvents(fromRevision(row).body)
        .filter((event) => !gone.has(event.key))
        .map((event) => event.field),
    );
    if (left.length === 0) this.#statements.remove.run(revision);
    else this.#statements.replace.run(checksum(left, row.idx, row.term), left, revision);
  }
}

/** Names of documents for this file's own use. */
const VOTE = '.vote';
const INCOMING = '.incoming';
/** Names of numbers for this file's own use. */
const JOURNAL_ID = 'journal_id';
const JOURNAL_SEQUENCE = 'journal_sequence';
