import assert from 'node:assert/strict';
import { cp, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import Database from 'better-sqlite3';
import { CodedError } from '../../../../src/base/errors.ts';
import { silentLog } from '../../../../src/base/log.ts';
import { encodePutEvent } from '../../../../src/store/core/messages/event.ts';
import { createSqliteLog } from '../../../../src/store/disk/index.ts';
import { EntryKind, type LogBatch, type StoredEntry, type StoreLog } from '../../../../src/store/disk/port.ts';

const coded = (code: string) => (error: unknown) => error instanceof CodedError && error.code === code;
const JOURNAL = 'revisions.db-log';
/** Position of the first record. */
const FIRST = 4096;

function row(revision: number, bytes = 1, term = 1): StoredEntry {
  const value = Buffer.alloc(bytes, revision % 256);
  const { field } = encodePutEvent({
    key: 'k',
    createRevision: 2,
    modRevision: revision,
    version: revision,
    value,
    lease: 0n,
  });
  return { index: revision, term, kind: EntryKind.revision, revision, lease: 0n, body: field };
}

const batch = (...entries: StoredEntry[]): LogBatch => ({ entries, discards: [] });

async function begun(directory: string): Promise<StoreLog> {
  const log = createSqliteLog({ directory, log: silentLog });
  await log.open((error) => assert.fail(error.message));
  return log;
}

/** All entries of the log, from the initial load and from reading the log. */
async function contentOf(log: StoreLog): Promise<StoredEntry[]> {
  const rows: StoredEntry[] = [];
  await log.load(Number.MAX_SAFE_INTEGER, (some) => {
    rows.push(...some.map((each) => ({ ...each, body: Buffer.from(each.body) })));
  });
  const entries: StoredEntry[] = [];
  for (let from = 2; ; ) {
    const some = await log.entries(from, 1 << 20);
    if (some.length === 0) break;
    entries.push(...some.map((each) => ({ ...each, body: Buffer.from(each.body) })));
    from = (some.at(-1)?.index ?? 0) + 1;
  }
  assert.deepEqual(
    entries.filter(({ revision }) => revision > 0),
    rows,
  );
  return rows;
}

describe('journal of the store', () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'hyperedge-journal-'));
  });
  after(async () => {
    await rm(directory, { recursive: true, force: true });
  });
  const fresh = (): Promise<string> => mkdtemp(join(directory, 'data-'));

  /** A copy of the directory, as after a power failure at this moment. */
  async function cut(data: string): Promise<string> {
    const copy = await fresh();
    await cp(data, copy, { recursive: true });
    return copy;
  }

  async function revisionsOf(data: string): Promise<number[]> {
    const log = await begun(data);
    const found = (await contentOf(log)).map(({ revision }) => revision);
    await log.close();
    return found;
  }

  it('recovers commits from the journal that are not in the database, and deletes the journal on a clean close', async () => {
    const data = await fresh();
    const log = await begun(data);
    for (let revision = 2; revision < 8; revision += 1) await log.commit(batch(row(revision)));
    assert.equal((await stat(join(data, JOURNAL))).mode & 0o777, 0o600);
    const copy = await cut(data);
    assert.equal(
      new Database(join(copy, 'revisions.db')).prepare('SELECT count(*) AS n FROM revision').pluck().get(),
      0,
    );
    assert.deepEqual(await revisionsOf(copy), [2, 3, 4, 5, 6, 7]);
    await log.close();
    assert.deepEqual((await readdir(data)).sort(), ['ballast', 'owner', 'revisions.db']);
    const database = new Database(join(data, 'revisions.db'));
    assert.deepEqual(
      ['auto_vacuum', 'page_size'].map((name) => database.pragma(name, { simple: true })),
      [2, 1024],
    );
    database.close();
    assert.deepEqual(await revisionsOf(data), [2, 3, 4, 5, 6, 7]);
  });

  it('ignores a torn last record of the journal, for any length', async () => {
    const data = await fresh();
    const log = await begun(data);
    for (let revision = 2; revision < 5; revision += 1) await log.commit(batch(row(revision, 300)));
    const copy = await cut(data);
    await log.close();
    const whole = await readFile(join(copy, JOURNAL));
    const end = whole.findLastIndex((byte) => byte !== 0) + 1;
    const last = whole.lastIndexOf('\x93hej', end, 'latin1');
    for (let at = last; at < end - 8; at += 83) {
      const torn = await cut(copy);
      // A part of the record was never written.
      await writeFile(join(torn, JOURNAL), Buffer.concat([whole.subarray(0, at), Buffer.alloc(whole.length - at)]));
      assert.deepEqual(await revisionsOf(torn), [2, 3]);
    }
    await truncate(join(copy, JOURNAL), last + 20);
    assert.deepEqual(await revisionsOf(copy), [2, 3]);
  });

  it('fails to open a damaged journal rather than losing acknowledged commits', async () => {
    const data = await fresh();
    const log = await begun(data);
    for (let revision = 2; revision < 8; revision += 1) await log.commit(batch(row(revision, 300)));
    const copy = await cut(data);
    await log.close();
    const whole = await readFile(join(copy, JOURNAL));
    for (const at of [2, FIRST + 40, FIRST + 4, FIRST + 17, FIRST + 1000]) {
      const damaged = await cut(copy);
      const bytes = Buffer.from(whole);
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      await writeFile(join(damaged, JOURNAL), bytes);
      await assert.rejects(begun(damaged), (error) => {
        assert.match(String(error), /revisions\.db-log is damaged.*restore a snapshot/);
        return coded('corrupt')(error);
      });
    }
    const without = await cut(copy);
    await rm(join(without, JOURNAL));
    await assert.rejects(begun(without), /revisions\.db-log is missing.*restore a snapshot/);
    // Restoring the database without its journal requires the option `isCopy`.
    const alone = createSqliteLog({ directory: await cut(without), isCopy: true, log: silentLog });
    await alone.open((error) => assert.fail(error.message));
    assert.deepEqual(await contentOf(alone), []);
    await alone.close();
    const anothers = await fresh();
    const other = await begun(anothers);
    await writeFile(join(without, JOURNAL), await readFile(join(anothers, JOURNAL)));
    await other.close();
    await assert.rejects(begun(without), coded('corrupt'));
  });

  it('ignores a journal to which the database does not refer', async () => {
    const data = await fresh();
    const log = await begun(data);
    await log.commit(batch(row(2)));
    const copy = await cut(data);
    await log.close();
    await rm(join(copy, 'revisions.db'));
    assert.deepEqual(await revisionsOf(copy), []);
  });

  it('prevents older releases from opening the database without its journal', async () => {
    const data = await fresh();
    const log = await begun(data);
    const version = async (): Promise<unknown> =>
      new Database(join(await cut(data), 'revisions.db')).pragma('user_version', { simple: true });
    assert.equal(await version(), 4);
    await log.close();
    assert.equal(await version(), 3);
  });

  it('loses no commit in a crash at any moment while the journal wraps around', async () => {
    const data = await fresh();
    const log = await begun(data);
    const model = new Map<number, StoredEntry>();
    let seed = 7;
    const random = (below: number): number => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return (seed >>> 8) % below;
    };
    let next = 2;
    let term = 1;
    const cuts: Array<{ readonly copy: string; readonly expected: StoredEntry[] }> = [];
    for (let i = 0; i < 160; i += 1) {
      // Files cannot be copied while they are being written; from here new records are only in the journal.
      if (i % 50 === 31) await log.hash(2);
      if (random(20) === 0 && next > 10) {
        // Entries of another leader replace some entries of the log.
        next -= random(8);
        term += 1;
      }
      const bytes = random(10) === 0 ? 700_000 : random(40_000);
      const entries = Array.from({ length: 1 + random(4) }, (_, at) => row(next + at, bytes, term));
      for (const revision of [...model.keys()]) if (revision >= next) model.delete(revision);
      for (const entry of entries) model.set(entry.revision, entry);
      next += entries.length;
      const applied = {
        index: 2,
        compacted: 0,
        leasesGranted: [{ id: BigInt(i), ttlSeconds: 5 }],
        leasesRevoked: [],
        documents: new Map([['count', Buffer.from(`${i}`)]]),
      };
      await log.commit({ ...batch(...entries), ...(i % 3 === 0 ? { applied } : {}) });
      const requested = [...model.keys()].filter(() => random(30) === 0);
      const found = await log.read(requested);
      for (const [at, revision] of requested.entries())
        assert.deepEqual(Buffer.from(found[at] as Uint8Array), Buffer.from(model.get(revision)?.body as Uint8Array));
      if (i % 50 === 31) cuts.push({ copy: await cut(data), expected: [...model.values()] });
    }
    assert.deepEqual(await contentOf(log), [...model.values()]);
    await log.close();
    assert.deepEqual(await revisionsOf(data), [...model.keys()]);
    for (const { copy, expected } of cuts) {
      const again = createSqliteLog({ directory: copy, log: silentLog });
      const { documents } = await again.open((error) => assert.fail(error.message));
      assert.ok(documents.has('count'));
      assert.deepEqual(await contentOf(again), expected);
      await again.close();
    }
  });
});
