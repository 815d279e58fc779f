import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, open, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';
import { CodedError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import { encodePutEvent } from '../../../src/store/core/messages/event.ts';
import { createSqliteLog } from '../../../src/store/disk/index.ts';
import {
  EntryKind,
  type LogBatch,
  type LogState,
  type StoredEntry,
  type StoreLog,
} from '../../../src/store/disk/port.ts';

const run = promisify(execFile);
const coded = (code: string) => (error: unknown) => error instanceof CodedError && error.code === code;

const EMPTY: LogBatch = { entries: [], discards: [] };
const APPLIED = { index: 1, compacted: 0, leasesGranted: [], leasesRevoked: [], documents: new Map() };

function event(key: string, revision: number, value: Uint8Array = Buffer.from('v')): Buffer {
  return encodePutEvent({ key, createRevision: revision, modRevision: revision, version: 1, value, lease: 0n }).field;
}

function entry(revision: number, events: Uint8Array, index = revision, term = 1): StoredEntry {
  return { index, term, kind: EntryKind.revision, revision, lease: 0n, body: events };
}

function row(revision: number, ...keys: string[]): StoredEntry {
  return entry(revision, Buffer.concat(keys.map((key) => event(key, revision))));
}

function command(index: number, body: string, term = 1): StoredEntry {
  return { index, term, kind: EntryKind.command, revision: 0, lease: 0n, body: Buffer.from(body) };
}

function flipped(bytes: Buffer, at: number): Buffer {
  const damaged = Buffer.from(bytes);
  damaged[at] = (damaged[at] ?? 0) ^ 1;
  return damaged;
}

interface Opened {
  readonly log: StoreLog;
  readonly rows: StoredEntry[];
  readonly state: LogState;
  readonly fatal: Error[];
}

async function opened(directory: string): Promise<Opened> {
  const log = createSqliteLog({ directory, log: silentLog });
  const rows: StoredEntry[] = [];
  const fatal: Error[] = [];
  const state = await log.open((error) => fatal.push(error));
  try {
    await log.load(Number.MAX_SAFE_INTEGER, (some) => {
      rows.push(...some.map((one) => ({ ...one, body: Buffer.from(one.body) })));
    });
  } catch (error) {
    await log.close();
    throw error;
  }
  return { log, rows, state, fatal };
}

describe('store log in SQLite', () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'hyperedge-log-'));
  });
  after(async () => {
    await rm(directory, { recursive: true, force: true });
  });
  const fresh = (): Promise<string> => mkdtemp(join(directory, 'data-'));

  const revisionsOf = async (data: string): Promise<number[]> => {
    const { log, rows } = await opened(data);
    await log.close();
    return rows.map(({ revision }) => revision);
  };

  it('the store log returns committed entries in order after it is reopened', async () => {
    const data = await fresh();
    const first = await opened(data);
    await first.log.commit({
      ...EMPTY,
      entries: [row(2, 'a'), row(3, 'b', 'c')],
      applied: { ...APPLIED, index: 3, leasesGranted: [{ id: 1n << 62n, ttlSeconds: 5 }] },
    });
    const identity = { clusterId: (1n << 64n) - 1n, memberId: 7n };
    await first.log.initialise(identity, {
      ...EMPTY,
      entries: [row(4, 'd')],
      applied: { ...APPLIED, index: 4, compacted: 3, documents: new Map([['users', Buffer.from('none')]]) },
      hardState: { term: 5, vote: 'a', commit: 4 },
      reserved: 99,
    });
    await first.log.close();
    const second = await opened(data);
    assert.deepEqual(
      second.rows.map((r) => r.revision),
      [2, 3, 4],
    );
    assert.deepEqual(second.rows[1]?.body, row(3, 'b', 'c').body);
    assert.deepEqual(second.state.leases, [{ id: 1n << 62n, ttlSeconds: 5 }]);
    assert.deepEqual([second.state.compacted, second.state.reserved], [3, 99]);
    assert.equal(first.state.identity, undefined);
    assert.deepEqual(second.state.identity, identity);
    assert.deepEqual(second.state.hardState, { term: 5, vote: 'a', commit: 4 });
    assert.equal(second.state.applied, 4);
    assert.deepEqual(
      [...second.state.documents].map(([name, value]) => [name, Buffer.from(value).toString()]),
      [['users', 'none']],
    );
    await second.log.close();
  });

  it('the store log loads more entries than fit into one response', async () => {
    const data = await fresh();
    const first = await opened(data);
    const value = Buffer.alloc(100_000, 'x');
    const rows = Array.from({ length: 40 }, (_, i) => entry(i + 2, event(`k${i}`, i + 2, value)));
    await first.log.commit({ ...EMPTY, entries: rows });
    await first.log.close();
    const second = await opened(data);
    assert.deepEqual(
      second.rows.map((r) => r.revision),
      rows.map((r) => r.revision),
    );
    await second.log.close();
  });

  it('deletes whole revisions and single events from the log, and revokes leases', async () => {
    const data = await fresh();
    const { log } = await opened(data);
    await log.commit({
      ...EMPTY,
      entries: [row(2, 'a'), row(3, 'a', 'b'), row(4, 'c', 'd')],
      applied: { ...APPLIED, index: 4, leasesGranted: [{ id: 7n, ttlSeconds: 9, remainingSeconds: 3 }] },
    });
    const discards = [{ revision: 2 }, { revision: 3, keys: ['a'] }, { revision: 4, keys: ['c', 'd'] }];
    await log.commit({ ...EMPTY, discards, applied: { ...APPLIED, index: 4, leasesRevoked: [7n] } });
    const [two, three, four] = await log.read([2, 3, 4]);
    assert.equal(two, undefined);
    assert.deepEqual(three && Buffer.from(three), event('b', 3));
    assert.equal(four, undefined);
    await log.close();
    const again = await opened(data);
    assert.deepEqual(again.state.leases, []);
    await again.log.close();
  });

  it('keeps revisions and other raft entries in one log, and deletes overwritten entries', async () => {
    const data = await fresh();
    const first = await opened(data);
    const indexes = async (log: StoreLog, from: number): Promise<number[]> =>
      (await log.entries(from, 1 << 20)).map(({ index }) => index);
    const events = (revision: number): Buffer => event('k', revision);
    await first.log.commit({
      ...EMPTY,
      entries: [
        command(2, 'a'),
        entry(2, events(2), 3),
        command(4, 'b'),
        entry(3, events(3), 5),
        entry(4, events(4), 6),
        command(7, 'c'),
      ],
    });
    assert.deepEqual(await indexes(first.log, 2), [2, 3, 4, 5, 6, 7]);
    assert.deepEqual(await indexes(first.log, 6), [6, 7]);
    assert.equal((await first.log.entries(2, 1)).length, 1);
    // Entries of another leader replace those from index 5 on.
    await first.log.commit({ ...EMPTY, entries: [command(5, 'd', 2), entry(3, events(3), 6, 2)] });
    assert.deepEqual(await indexes(first.log, 4), [4, 5, 6]);
    await first.log.close();
    const second = await opened(data);
    assert.deepEqual(
      second.rows.map(({ index, revision, term }) => [index, revision, term]),
      [
        [3, 2, 1],
        [6, 3, 2],
      ],
    );
    assert.deepEqual(await indexes(second.log, 2), [2, 3, 4, 5, 6]);
    await second.log.commit({ ...EMPTY, base: { index: 4, term: 1 }, applied: { ...APPLIED, index: 4 } });
    assert.deepEqual(await indexes(second.log, 4), []);
    assert.deepEqual(await indexes(second.log, 5), [5, 6]);
    assert.deepEqual(
      (await second.log.rows(0, 9)).map(({ revision }) => revision),
      [2, 3],
    );
    await second.log.close();
    const third = await opened(data);
    assert.deepEqual(third.state.base, { index: 4, term: 1 });
    assert.deepEqual(await indexes(third.log, 5), [5, 6]);
    await third.log.close();
  });

  it('receives the snapshot of another member, resumes an interrupted transfer, and installs the snapshot', async () => {
    const data = await fresh();
    const first = await opened(data);
    await first.log.initialise({ clusterId: 1n, memberId: 2n }, { ...EMPTY, entries: [row(2, 'old')] });
    assert.equal(await first.log.receive('one'), 0);
    await first.log.received('one', [row(5, 'a'), row(6, 'b')]);
    await first.log.close();
    const second = await opened(data);
    assert.equal(await second.log.receive('one'), 6);
    assert.equal(await second.log.receive('two'), 0);
    await assert.rejects(second.log.received('one', [row(7, 'c')]), coded('not-receiving'));
    await second.log.received('two', [entry(5, event('a', 5), 10, 3), entry(6, event('b', 6), 12, 3)]);
    const head = {
      position: { index: 12, term: 3 },
      revision: 6,
      compacted: 4,
      clusterId: 9n,
      leases: [{ id: 5n, ttlSeconds: 60, remainingSeconds: 7 }],
      documents: new Map([['users', Buffer.from('some')]]),
    };
    const state = await second.log.install('two', head, { term: 4, vote: undefined, commit: 12 });
    assert.deepEqual(state.identity, { clusterId: 9n, memberId: 2n });
    await second.log.commit({ ...EMPTY, entries: [entry(7, event('c', 7), 13, 4)] });
    await second.log.close();
    const third = await opened(data);
    assert.deepEqual(
      third.rows.map(({ revision }) => revision),
      [5, 6, 7],
    );
    assert.deepEqual(third.state.base, head.position);
    assert.deepEqual(third.state.hardState, { term: 4, vote: undefined, commit: 12 });
    assert.deepEqual(third.state.leases, head.leases);
    assert.deepEqual(
      (await third.log.entries(13, 1)).map(({ index }) => index),
      [13],
    );
    assert.deepEqual(
      (await readdir(data)).filter((name) => name.startsWith('incoming')),
      [],
    );
    await third.log.close();
  });

  it('the store log migrates a database of version 1', async () => {
    const data = await fresh();
    const old = new Database(join(data, 'revisions.db'));
    old.exec(`
      CREATE TABLE revision (revision INTEGER PRIMARY KEY, crc INTEGER NOT NULL, events BLOB NOT NULL) STRICT;
      CREATE TABLE lease (id INTEGER PRIMARY KEY, ttl INTEGER NOT NULL) STRICT;
      CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
      INSERT INTO meta VALUES ('cluster_id', 5), ('member_id', 6), ('compacted', 2), ('reserved', 40);
      INSERT INTO lease VALUES (77, 30);
      PRAGMA user_version = 1;
    `);
    const insert = old.prepare('INSERT INTO revision VALUES (?, ?, ?)');
    for (const revision of [2, 4, 5]) insert.run(revision, crc32(event('k', revision)), event('k', revision));
    old.close();
    const { log, rows, state } = await opened(data);
    assert.deepEqual(
      rows.map(({ index, revision }) => [index, revision]),
      [
        [2, 2],
        [4, 4],
        [5, 5],
      ],
    );
    assert.deepEqual(state.identity, { clusterId: 5n, memberId: 6n });
    assert.deepEqual(state.base, { index: 5, term: 1 });
    assert.deepEqual([state.applied, state.compacted, state.reserved], [5, 2, 40]);
    assert.deepEqual(state.leases, [{ id: 77n, ttlSeconds: 30 }]);
    await log.close();
  });

  it('rejects a second process on the same data directory and names the PID of the first', async () => {
    const data = await fresh();
    const { log } = await opened(data);
    await assert.rejects(opened(data), (error) => {
      assert.ok(coded('in-use')(error));
      return (error as Error).message.includes(`process ${process.pid}`);
    });
    await log.commit({ ...EMPTY, entries: [row(2, 'a')] });
    await log.close();
    await (await opened(data)).log.close();
  });

  it('stores have equal hashes exactly if their content is equal', async () => {
    const hashes: number[] = [];
    for (const keys of [
      ['a', 'b'],
      ['a', 'b'],
      ['a', 'x'],
    ]) {
      const { log } = await opened(await fresh());
      await log.commit({ ...EMPTY, entries: keys.map((key, i) => row(i + 2, key)) });
      hashes.push(await log.hash(3), await log.hash(2));
      await log.close();
    }
    assert.equal(hashes[0], hashes[2]);
    assert.notEqual(hashes[0], hashes[4]);
    assert.equal(hashes[1], hashes[5]);
  });

  it('the store log creates a consistent copy of itself while writes continue', async () => {
    const data = await fresh();
    const { log } = await opened(data);
    await log.commit({ ...EMPTY, entries: [row(2, 'a')] });
    const { size, pieces } = await log.snapshot(Number.MAX_SAFE_INTEGER);
    const copy = join(await fresh(), 'revisions.db');
    const bytes: Uint8Array[] = [];
    for await (const piece of pieces) bytes.push(piece);
    await writeFile(copy, Buffer.concat(bytes));
    assert.equal(Buffer.concat(bytes).length, size);
    assert.deepEqual(
      (await readdir(data)).filter((name) => name.endsWith('.tmp')),
      [],
    );
    await log.close();
    const restored = await opened(join(copy, '..'));
    assert.deepEqual(
      restored.rows.map((r) => r.revision),
      [2],
    );
    await restored.log.close();
  });

  it('keeps at most two copies of itself for many readers, of which one has stopped', async () => {
    const data = await fresh();
    const { log } = await opened(data);
    await log.commit({ ...EMPTY, entries: [row(2, 'a')] });
    const copies = async (): Promise<number> => (await readdir(data)).filter((name) => name.endsWith('.tmp')).length;
    const stopped = (await log.snapshot(2)).pieces[Symbol.asyncIterator]();
    await stopped.next();
    let most = 0;
    const sizes = await Promise.all(
      Array.from({ length: 12 }, async (_, index) => {
        await new Promise((resolve) => setTimeout(resolve, index * 3));
        const { size, pieces } = await log.snapshot(2);
        let read = 0;
        for await (const piece of pieces) {
          most = Math.max(most, await copies());
          read += piece.length;
        }
        return size > 0 && read === size;
      }),
    );
    assert.deepEqual(new Set(sizes), new Set([true]));
    assert.equal(most, 2);
    assert.equal(await copies(), 1);
    await stopped.return?.();
    assert.equal(await copies(), 0);
    // A snapshot contains everything that was written before it was requested.
    await log.commit({ ...EMPTY, entries: [row(3, 'b')] });
    const parts: Uint8Array[] = [];
    for await (const piece of (await log.snapshot(3)).pieces) parts.push(piece);
    const copy = await fresh();
    await writeFile(join(copy, 'revisions.db'), Buffer.concat(parts));
    const restored = await opened(copy);
    assert.deepEqual(
      restored.rows.map(({ revision }) => revision),
      [2, 3],
    );
    await restored.log.close();
    await log.close();
  });

  it('detects a flipped byte in a log row and fails instead of returning the row', async () => {
    const data = await fresh();
    const first = await opened(data);
    await first.log.commit({ ...EMPTY, entries: [entry(2, event('k', 2, Buffer.alloc(9000, 'x')))] });
    await first.log.defragment();
    await first.log.close();
    const file = await open(join(data, 'revisions.db'), 'r+');
    const { buffer, bytesRead } = await file.read(Buffer.alloc(1 << 20), 0, 1 << 20, 0);
    await file.write('y', buffer.subarray(0, bytesRead).indexOf('xxxxxxxx') + 20);
    await file.close();
    await assert.rejects(opened(data), coded('corrupt'));
  });

  /** Files of an older version after a power failure: a write-ahead log with several commits. */
  async function writtenAhead(): Promise<{ readonly database: Buffer; readonly log: Buffer }> {
    const data = await fresh();
    await (await opened(data)).log.close();
    const db = new Database(join(data, 'revisions.db'));
    db.pragma('journal_mode = WAL');
    const insert = db.prepare('INSERT INTO revision (revision, idx, term, crc, events) VALUES (?, ?, 1, ?, ?)');
    for (let revision = 2; revision < 8; revision += 1) {
      const { body } = row(revision, 'k');
      insert.run(revision, revision, crc32(body, (Math.imul(revision, 0x9e37_79b1) ^ 1) >>> 0), body);
    }
    const [database, log] = [
      await readFile(join(data, 'revisions.db')),
      await readFile(join(data, 'revisions.db-wal')),
    ];
    db.close();
    return { database, log };
  }

  it('ignores a torn last commit of an older release, and fails if earlier commits would be lost', async () => {
    const { database, log: bytes } = await writtenAhead();
    const wal = 'revisions.db-wal';
    const withLog = async (content: Buffer): Promise<string> => {
      const copy = await fresh();
      await writeFile(join(copy, 'revisions.db'), database);
      await writeFile(join(copy, wal), content);
      return copy;
    };
    const frame = 24 + bytes.readUInt32BE(8);
    assert.deepEqual(await revisionsOf(await withLog(bytes)), [2, 3, 4, 5, 6, 7]);
    assert.deepEqual(await revisionsOf(await withLog(bytes.subarray(0, bytes.length - 100))), [2, 3, 4, 5, 6]);
    assert.deepEqual(await revisionsOf(await withLog(flipped(bytes, bytes.length - frame + 200))), [2, 3, 4, 5, 6]);
    const damaged = await withLog(flipped(bytes, bytes.length - 3 * frame));
    let mend = 0;
    await assert.rejects(opened(damaged), (error: unknown) => {
      mend = Number(/revisions\.db-wal .*--size=(\d+)/.exec(String(error))?.[1]);
      return coded('corrupt')(error);
    });
    await truncate(join(damaged, wal), mend);
    const rest = await revisionsOf(damaged);
    assert.deepEqual(rest, [2, 3, 4, 5, 6, 7].slice(0, rest.length));
    assert.ok(rest.length > 0 && rest.length < 5);
    await assert.rejects(opened(await withLog(flipped(bytes, 17))), coded('corrupt'));
  });

  it('the store log rejects a file that is not a database', async () => {
    const data = await fresh();
    await writeFile(join(data, 'revisions.db'), 'this is not a database, whatever its name says'.repeat(100));
    await assert.rejects(opened(data), coded('corrupt'));
  });

  it('the database stays small while a key is overwritten and compacted endlessly', async () => {
    const data = await fresh();
    const { log } = await opened(data);
    const value = Buffer.alloc(20_000, 'x');
    for (let revision = 2; revision < 1002; revision += 10) {
      const entries = Array.from({ length: 10 }, (_, i) => entry(revision + i, event('k', revision + i, value)));
      const discards = revision > 2 ? Array.from({ length: 10 }, (_, i) => ({ revision: revision - 10 + i })) : [];
      await log.commit({ ...EMPTY, entries, discards });
    }
    const { bytes } = await log.size();
    assert.ok(bytes < 2_000_000, `${bytes} bytes for 200,000 that live, after 20,000,000 written`);
    await log.close();
  });

  it('on a full disk, the store log rejects writes, serves reads, and continues when space is free again', {
    skip: process.getuid?.() !== 0,
  }, async () => {
    const mount = await fresh();
    await run('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', mount]);
    try {
      const filler = join(mount, 'filler');
      const { log, fatal } = await opened(mount);
      await log.commit({ ...EMPTY, entries: [row(2, 'a')] });
      await writeFile(filler, Buffer.alloc(4 << 20)).catch(() => {});
      const value = Buffer.alloc(50_000, 'x');
      let refusedAt = 0;
      for (let revision = 3; refusedAt === 0; revision += 1) {
        try {
          await log.commit({ ...EMPTY, entries: [entry(revision, event('k', revision, value))] });
        } catch (error) {
          assert.ok(coded('no-space')(error), String(error));
          refusedAt = revision;
        }
      }
      assert.deepEqual(Buffer.from((await log.read([2]))[0] ?? []), row(2, 'a').body);
      await rm(filler);
      await log.commit({ ...EMPTY, entries: [entry(refusedAt, event('k', refusedAt, value))] });
      assert.deepEqual(fatal, []);
      await log.close();
      const again = await opened(mount);
      assert.equal(again.rows.at(-1)?.revision, refusedAt);
      await again.log.close();
    } finally {
      await run('umount', [mount]);
    }
  });
});
