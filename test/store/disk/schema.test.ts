/** Table changes by the level of the cluster's log, and copies of the store. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import Database from 'better-sqlite3';
import { silentLog } from '../../../src/base/log.ts';
import { createSqliteLog } from '../../../src/store/disk/index.ts';
import { EntryKind } from '../../../src/store/disk/port.ts';
import {
  changeSchema,
  createSchema,
  FIRST_SCHEMA,
  type SchemaChange,
  setJournalInUse,
} from '../../../src/store/disk/schema.ts';

const version = (db: Database.Database): unknown => db.pragma('user_version', { simple: true });
const NEXT: readonly SchemaChange[] = [
  { to: 5, level: 3, make: (db) => db.exec('ALTER TABLE lease ADD COLUMN owner TEXT') },
  { to: 7, level: 4, make: (db) => db.exec('CREATE TABLE next (id INTEGER PRIMARY KEY) STRICT') },
];
const hasOwner = (db: Database.Database): boolean =>
  db
    .prepare<[], { name: string }>("SELECT name FROM pragma_table_info('lease')")
    .all()
    .some(({ name }) => name === 'owner');

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'he-schema-'));
});
after(() => rm(directory, { recursive: true, force: true }));

test('changes the database schema only when the store reaches the level of the change, with and without a journal', () => {
  for (const inUse of [false, true]) {
    const db = new Database(':memory:');
    createSchema(db, 'x.db', NEXT);
    setJournalInUse(db, inUse);
    const journal = inUse ? 1 : 0;
    assert.equal(version(db), FIRST_SCHEMA + journal);
    assert.equal(changeSchema(db, 2, NEXT), FIRST_SCHEMA);
    assert.equal(hasOwner(db), false);
    assert.equal(changeSchema(db, 3, NEXT), 5);
    assert.equal(hasOwner(db), true);
    assert.equal(version(db), 5 + journal);
    assert.equal(changeSchema(db, 3, NEXT), 5);
    setJournalInUse(db, !inUse);
    assert.equal(version(db), 5 + (inUse ? 0 : 1));
    // The same program and the former program open the file again.
    createSchema(db, 'x.db', NEXT);
    assert.throws(() => createSchema(db, 'x.db'), {
      code: 'schema-too-new',
      message: /x\.db: schema [56] is of a newer/,
    });
    db.close();
  }
});

test('a newer release keeps the database readable for the former release', () => {
  const db = new Database(':memory:');
  createSchema(db, 'x.db');
  createSchema(db, 'x.db', NEXT);
  createSchema(db, 'x.db');
  assert.equal(version(db), FIRST_SCHEMA);
  db.close();
});

test('creates snapshot copies with private file modes, and deletes copies left by a crash at the next start', async () => {
  const at = join(directory, 'copies');
  const log = createSqliteLog({ directory: at, log: silentLog });
  await rm(at, { recursive: true, force: true });
  const { mkdir } = await import('node:fs/promises');
  await mkdir(at, { mode: 0o755 });
  const mask = process.umask(0o022);
  try {
    await writeFile(join(at, 'snapshot-4711-1.tmp'), 'left behind');
    await writeFile(join(at, 'snapshot-4711-1.tmp-journal'), 'left behind');
    await log.open((error) => assert.fail(error));
    assert.deepEqual(
      (await readdir(at)).filter((name) => name.startsWith('snapshot-')),
      [],
    );
    await log.initialise(
      { clusterId: 1n, memberId: 2n },
      { entries: [], discards: [], hardState: { term: 1, vote: undefined, commit: 1 }, base: { index: 1, term: 1 } },
    );
    const body = Buffer.alloc(1 << 16, 1);
    for (let index = 2; index < 200; index += 1)
      await log.commit({
        entries: [{ index, term: 1, kind: EntryKind.noop, revision: 0, lease: 0n, body }],
        discards: [],
      });
    let ended = false;
    const modes = new Set<string>();
    const used = log.snapshot(1_000).finally(() => {
      ended = true;
    });
    while (!ended) {
      for (const name of await readdir(at)) {
        if (!name.startsWith('snapshot-')) continue;
        const status = await stat(join(at, name)).catch(() => undefined);
        if (status !== undefined) modes.add((status.mode & 0o777).toString(8));
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    const { pieces } = await used;
    for await (const _ of pieces);
    assert.deepEqual([...modes], ['600']);
  } finally {
    process.umask(mask);
    await log.close();
  }
});
