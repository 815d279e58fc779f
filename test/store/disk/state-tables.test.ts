/**
 * Checksums of the numbers, documents and leases in the store's file, and their migration from files without checksums.
 */
import assert from 'node:assert/strict';
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import Database from 'better-sqlite3';
import { CodedError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import { openAssets } from '../../../src/host/process/assets.ts';
import { encodePutEvent } from '../../../src/store/core/messages/event.ts';
import { createSqliteLog, summarizeSnapshot } from '../../../src/store/disk/index.ts';
import { EntryKind, type LogState, type StoredEntry, type StoreLog } from '../../../src/store/disk/port.ts';

let root = '';
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'state-tables-'));
});
after(() => rm(root, { recursive: true }));

const fresh = (): Promise<string> => mkdtemp(join(root, 'data-'));
const file = (data: string): string => join(data, 'revisions.db');

async function opened(data: string): Promise<{ readonly log: StoreLog; readonly state: LogState }> {
  const log = createSqliteLog({ directory: data, log: silentLog });
  return { log, state: await log.open(() => {}) };
}

function row(revision: number, value: Uint8Array): StoredEntry {
  const put = { key: 'k', createRevision: revision, modRevision: revision, version: 1, value, lease: 0n };
  const body = encodePutEvent(put).field;
  return { index: revision, term: 1, kind: EntryKind.revision, revision, lease: 0n, body };
}

const LEASES = [
  { id: -3n, ttlSeconds: 60 },
  { id: 77n, ttlSeconds: 30, remainingSeconds: 4 },
  { id: 0x7fff_ffff_ffff_fff1n, ttlSeconds: 9_000_000_000 },
];
const DOCUMENTS = new Map([
  ['auth', Buffer.alloc(0)],
  ['cluster', Buffer.from('who is there')],
]);
const APPLIED = { index: 3, compacted: 2, leasesGranted: LEASES, leasesRevoked: [], documents: DOCUMENTS };

async function filled(data: string): Promise<StoreLog> {
  const { log } = await opened(data);
  const command = { index: 2, term: 1, kind: EntryKind.command, revision: 0, lease: 0n, body: Buffer.from('c') };
  const base = { index: 1, term: 1 };
  await log.initialise(
    { clusterId: 0xffff_ffff_ffff_fff0n, memberId: 6n },
    {
      entries: [command, row(3, Buffer.from('v'))],
      discards: [],
      hardState: { term: 1, vote: 'f', commit: 3 },
      base,
      applied: APPLIED,
    },
  );
  return log;
}

const STATE = {
  identity: { clusterId: 0xffff_ffff_ffff_fff0n, memberId: 6n },
  hardState: { term: 1, vote: 'f', commit: 3 },
  base: { index: 1, term: 1 },
  applied: 3,
  compacted: 2,
  reserved: 0,
  leases: LEASES,
};

function checkState({ documents, ...rest }: LogState): void {
  assert.deepEqual(rest, STATE);
  assert.deepEqual(
    [...documents].map(([name, value]) => [name, Buffer.from(value)]),
    [...DOCUMENTS],
  );
}

/** Result of opening a closed store after a direct change by SQL. */
async function changed(sql: string): Promise<string> {
  const data = await fresh();
  await (await filled(data)).close();
  const db = new Database(file(data));
  db.exec(sql);
  db.close();
  return data;
}

const corrupt = (what: RegExp) => (error: unknown) =>
  error instanceof CodedError && error.code === 'corrupt' && what.test(error.message);

test('adds checksums to a database of version 2 once, and keeps its content', async () => {
  const data = await changed(`
    ALTER TABLE meta DROP COLUMN crc; ALTER TABLE document DROP COLUMN crc; ALTER TABLE lease DROP COLUMN crc;
    PRAGMA user_version = 2`);
  for (let i = 0; i < 2; i += 1) {
    const { log, state } = await opened(data);
    checkState(state);
    assert.equal(await log.scrub(0), 0);
    await log.close();
  }
  const db = new Database(file(data));
  assert.equal(db.pragma('user_version', { simple: true }), 3);
  db.exec("UPDATE document SET value = x'00' WHERE name = 'cluster'");
  db.close();
  await assert.rejects(opened(data), corrupt(/document cluster/));
});

for (const [what, sql, output] of [
  ['a changed number', "UPDATE meta SET value = value + 1 WHERE name = 'applied'", /number applied/],
  ['a changed start index of the log', "UPDATE meta SET value = 0 WHERE name = 'base_index'", /number base_index/],
  ['a number under another name', "UPDATE meta SET name = 'reserved' WHERE name = 'compacted'", /number reserved/],
  ['a changed vote', "UPDATE document SET value = x'67' WHERE name = '.vote'", /document \.vote/],
  ['content in an empty document', "UPDATE document SET value = x'67' WHERE name = 'auth'", /document auth/],
  ['a changed remaining time of a lease', 'UPDATE lease SET remaining = NULL WHERE id = 77', /lease 4d/],
  ['a changed TTL of a lease', 'UPDATE lease SET ttl = 61 WHERE id = -3', /lease fffffffffffffffd/],
  ['a changed ID of a lease', 'UPDATE lease SET id = 78 WHERE id = 77', /lease 4e/],
  ['a changed checksum', 'UPDATE lease SET crc = crc + 1 WHERE id = 77', /lease 4d/],
] as const) {
  test(`detects at the start that the database has ${what}`, async () => {
    await assert.rejects(opened(await changed(sql)), corrupt(output));
  });
}

for (const name of ['base_index', 'applied', 'cluster']) {
  test(`detects a damaged name ${name} in the database at the start, or is not affected by it`, async () => {
    const data = await fresh();
    await (await filled(data)).close();
    const whole = await readFile(file(data));
    let found = 0;
    for (let at = whole.indexOf(name); at >= 0; at = whole.indexOf(name, at + 1)) {
      const bytes = Buffer.from(whole);
      bytes[at + 1] = (bytes[at + 1] as number) ^ 4;
      await writeFile(file(data), bytes);
      try {
        const { log, state } = await opened(data);
        await log.close();
        checkState(state);
      } catch (error) {
        assert.ok(corrupt(/damaged/)(error), String(error));
        found += 1;
      }
    }
    assert.ok(found >= 2, `${found} places`);
  });
}

for (const [what, name, written] of [
  ['document', 'document big', 'd'],
  ['entry of the log', 'entry 4', 'e'],
] as const) {
  test(`verification of a running store detects a damaged ${what}`, async (t) => {
    const data = await fresh();
    const log = await filled(data);
    t.after(() => log.close());
    const large = Buffer.alloc(5000, written);
    const documents = new Map(written === 'd' ? [['big', large]] : []);
    const body = written === 'e' ? large : Buffer.from('small');
    const entry = { index: 4, term: 1, kind: EntryKind.command, revision: 0, lease: 0n, body };
    const applied = { ...APPLIED, leasesGranted: [], documents };
    await log.commit({ entries: [entry], discards: [], applied });
    // The rows are larger than SQLite's page cache, so the pages are read from the file again.
    const rows = Array.from({ length: 8000 }, (_, i) => row(i + 5, Buffer.alloc(700, i % 64)));
    await log.commit({ entries: rows, discards: [] });
    await log.defragment();
    assert.ok((await log.scrub(0)) > 0);
    const handle = await open(file(data), 'r+');
    const bytes = Buffer.alloc((await handle.stat()).size);
    await handle.read(bytes, 0, bytes.length, 0);
    // Free pages may still contain copies of moved content.
    const wanted = Buffer.alloc(600, written);
    for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, at + 600))
      await handle.write('x', at + 10);
    await handle.close();
    await log.load(Number.MAX_SAFE_INTEGER, () => {});
    await assert.rejects(log.scrub(0), corrupt(new RegExp(name)));
  });
}

test('detects damaged state tables in a snapshot of the store', async () => {
  const data = await fresh();
  const log = await filled(data);
  const { pieces } = await log.snapshot(Number.MAX_SAFE_INTEGER);
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  await log.close();
  const path = join(data, 'copy.db');
  await writeFile(path, Buffer.concat(all));
  const binding = (await openAssets()).sqliteAddon;
  assert.equal((await summarizeSnapshot(path, binding)).revision, 3);
  const db = new Database(path);
  db.exec('UPDATE lease SET ttl = 1 WHERE id = 77');
  db.close();
  await assert.rejects(summarizeSnapshot(path, binding), corrupt(/copy\.db: lease 4d is damaged/));
});
