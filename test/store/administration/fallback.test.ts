/**
 * Restore of the last scheduled snapshot by a single damaged member, run as a process and verified with Debian's
 * etcdctl.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { storeConditions } from '../../../src/store/administration/fallback.ts';
import type { EtcdAdmin } from '../../../src/store/administration/port.ts';
import { createEtcdAdmin } from '../../../src/store/client/etcd-admin.ts';
import { done, etcdctl, killAll, run, type Store, start } from '../../host/stores.ts';
import { freePort } from '../../support/ports.ts';
import { clock } from '../harness.ts';

const BUMP = 1_000_000_000;

let directory = '';
let data = '';
let snapshots = '';
let ports: readonly [number, number] = [0, 0];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hyperedge-fallback-'));
  data = join(directory, 'data');
  snapshots = join(directory, 'snapshots');
  ports = [await freePort(), await freePort()];
});
afterEach(async () => {
  await killAll();
  await rm(directory, { recursive: true, force: true });
});

const begin = (): Promise<Store> => start('ours', { name: 'alone', data, ports, args: ['--snapshots', snapshots] });

async function withAdmin<T>({ endpoint }: Store, ask: (admin: EtcdAdmin) => Promise<T>): Promise<T> {
  const admin = createEtcdAdmin({ endpoints: [endpoint], log: silentLog, clock });
  try {
    return await ask(admin);
  } finally {
    admin.close();
  }
}

const put = (store: Store, from: number, count: number): Promise<void> =>
  withAdmin(store, async (admin) => {
    for (let i = from; i < from + count; i += 1)
      await admin.putAll([{ key: `key${i}`, value: Buffer.alloc(3000, 'v'), lease: 0n }]);
  });

const look = (store: Store): Promise<{ readonly revision: number; readonly keys: number }> =>
  withAdmin(store, async (admin) => {
    const { revision, kvs } = await admin.range({ key: 'key', end: 'kez', keysOnly: true });
    return { revision, keys: kvs.length };
  });

/** Saves a snapshot like the scheduled ones. `second` separates the names, which have a resolution of one second. */
async function snapshot(store: Store, second: number): Promise<string> {
  const output = await done('snapshot', 'save', '--directory', snapshots, '--endpoints', store.endpoint);
  const [, file = ''] = /(\S+\.db)/.exec(output) ?? [];
  const named = file.replace(/-\d{8}T\d{6}Z/, `-20260101T0000${String(second).padStart(2, '0')}Z`);
  await rename(file, named);
  return named;
}

/** Damages rows so that SQLite still reads the file without an error. */
async function damage(file: string, from = 8192): Promise<void> {
  const { size } = await stat(file);
  const handle = await open(file, 'r+');
  for (let at = from; at < size; at += 4096) await handle.write(Buffer.alloc(64, 0xa5), 0, 64, at + 2048);
  await handle.close();
}

const database = (): string => join(data, 'revisions.db');
const kept = async (): Promise<string[]> =>
  (await readdir(data)).filter((name) => /^revisions\.db\.damaged-\w+$/.test(name));

test('restores the newest valid snapshot with raised revisions, and reports the damaged file and lost revisions', {
  timeout: 120_000,
}, async () => {
  const first = await begin();
  await put(first, 0, 6);
  const good = await snapshot(first, 1);
  await put(first, 6, 3);
  const torn = await snapshot(first, 2);
  await put(first, 9, 3);
  const before = await look(first);
  assert.deepEqual(before, { revision: 13, keys: 12 });
  await first.stop();
  await damage(torn);
  await writeFile(join(snapshots, 'not-one-of-ours.db'), 'x');
  await damage(database());

  const second = await begin();
  assert.deepEqual(await look(second), { revision: 7 + BUMP, keys: 6 });
  assert.equal((await kept()).length, 1);
  assert.match(second.log(), /restored from its last snapshot.*lost=/s);
  assert.match(second.log(), new RegExp(`snapshot cannot be restored.*${torn}`));
  const marker = await readFile(join(data, 'WENT-BACK'), 'utf8');
  assert.match(marker, new RegExp(`^at 20\\S+Z the store was damaged and was restored from ${good}; lost: .*revision`));
  const [condition] = await storeConditions(data, new Set());
  assert.deepEqual([condition?.type, condition?.status, condition?.message], ['StoreRestored', 'True', marker.trim()]);
  // Clients must restart watches that they opened before the restore.
  const args = ['--endpoints', second.endpoint, 'watch', 'key', '--prefix', '--rev', String(before.revision)];
  const watching = await run('/usr/bin/etcdctl', args, { ETCDCTL_API: '3' });
  assert.match(watching.err, /required revision has been compacted/);
  await put(second, 20, 2);
  await second.stop();

  // Restored from the same snapshot again, but no revision is assigned twice.
  await damage(database());
  const third = await begin();
  assert.deepEqual(await look(third), { revision: 7 + 2 * BUMP, keys: 6 });
  assert.equal((await kept()).length, 2);
  await third.stop();
  const note = JSON.parse(await readFile(join(data, 'went-back.json'), 'utf8'));
  assert.equal(note.times.length, 2);
  note.times.push(note.times[1]);
  await writeFile(join(data, 'went-back.json'), JSON.stringify(note));
  await damage(database(), 0);
  await assert.rejects(begin, /the store was restored 3 times within a day; check the disk first.*restore a snapshot/);
  // The existing data was not changed.
  assert.equal((await kept()).length, 2);
});

test('restores the snapshot of a running store when its file is damaged, and reports the revisions that clients have seen', {
  timeout: 60_000,
}, async () => {
  const first = await begin();
  await put(first, 0, 5);
  await snapshot(first, 1);
  await put(first, 5, 4);
  // Moves the data from the write-ahead log to the database file.
  await etcdctl(first.endpoint, 'defrag');
  await damage(database());
  await run('/usr/bin/etcdctl', ['--endpoints', first.endpoint, 'endpoint', 'hashkv'], { ETCDCTL_API: '3' });
  for (let tries = 0; !/restored from its last snapshot/.test(first.log()); tries += 1) {
    assert.ok(tries < 200, first.log());
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await etcdctl(first.endpoint, 'put', 'goes', 'on');
  assert.deepEqual(await look(first), { revision: 10 + BUMP + 1, keys: 5 });
  assert.match(await readFile(join(data, 'WENT-BACK'), 'utf8'), /lost: revisions 7 to 10;/);
  await rm(join(data, 'WENT-BACK'));
  assert.equal((await storeConditions(data, new Set(['Ready', 'StoreRestored'])))[0]?.status, 'False');
  assert.deepEqual(await storeConditions(data, new Set(['Ready'])), []);
});

test('restores the latest snapshot although the clock has restarted in 1970 since the others', {
  timeout: 180_000,
}, async () => {
  const first = await begin();
  await put(first, 0, 3);
  const older = await snapshot(first, 1);
  await put(first, 3, 3);
  const latest = await snapshot(first, 2);
  await rename(latest, latest.replace(/-\d{8}T/, '-19700101T'));
  await first.stop();
  await writeFile(database(), 'damaged'.repeat(1000));
  const second = await begin();
  assert.deepEqual(await look(second), { revision: 7 + BUMP, keys: 6 });
  await put(second, 6, 3);
  const afterwards = await snapshot(second, 3);
  await rename(afterwards, afterwards.replace(/-\d{8}T/, '-19700101T'));
  await second.stop();
  await writeFile(database(), 'damaged'.repeat(1000));
  const third = await begin();
  assert.equal((await look(third)).keys, 9, `restored from ${afterwards} instead of ${older}`);
});

test('does not restore a snapshot of other members, without a snapshot, or if the fallback is disabled', {
  timeout: 60_000,
}, async () => {
  const first = await begin();
  await put(first, 0, 5);
  await first.stop();
  await damage(database());
  await mkdir(snapshots, { recursive: true });
  await assert.rejects(
    begin,
    new RegExp(
      `no other member.*restoring a scheduled snapshot failed.*${snapshots} has no snapshots.*restore a snapshot`,
    ),
  );

  await rm(data, { recursive: true });
  const two = await begin();
  await put(two, 0, 5);
  await snapshot(two, 1);
  // The member does not have to exist; a possible member suffices.
  await etcdctl(two.endpoint, 'member', 'add', 'other', '--peer-urls=http://127.0.0.1:1', '--learner');
  await snapshot(two, 2);
  await two.stop();
  await damage(database(), 0);
  // The members are recorded beside the store, so that they are known also when the store is lost.
  const waiting = begin().catch(() => {});
  const others = JSON.parse(await readFile(join(data, 'others.json'), 'utf8'));
  assert.deepEqual(others, [['http://127.0.0.1:1']]);
  await killAll();
  await waiting;
  await rm(join(data, 'others.json'));
  await rm(data, { recursive: true });
  await mkdir(data);
  await writeFile(database(), 'damaged'.repeat(1000));
  await assert.rejects(begin, /the snapshot is of a cluster with other members \(\w{1,16}\)/);
  assert.deepEqual(await kept(), []);
  await assert.rejects(
    () => start('ours', { name: 'alone', data, ports }),
    /no other member from which this member can be rebuilt: move/,
  );
});

test('neither restores a snapshot nor begins a new store while the record of other members is unreadable', {
  timeout: 60_000,
}, async () => {
  const first = await begin();
  await put(first, 0, 5);
  await snapshot(first, 1);
  await first.stop();
  await writeFile(database(), 'damaged'.repeat(1000));
  const record = join(data, 'others.json');
  await writeFile(record, '\0'.repeat(20));
  await assert.rejects(begin, /others\.json: is damaged; it names the other members/);
  assert.deepEqual(await kept(), []);
  await rm(database());
  await assert.rejects(begin, /others\.json: is damaged; it names the other members/);
});

test('completes an interrupted restore of a snapshot at the next start', { timeout: 60_000 }, async () => {
  const first = await begin();
  await put(first, 0, 5);
  await first.stop();
  // State in which the new data is ready and the old data has been moved aside.
  await mkdir(join(data, 'restored'));
  await rename(database(), join(data, 'restored', 'revisions.db'));
  const second = await begin();
  assert.deepEqual(await look(second), { revision: 6, keys: 5 });
  await second.stop();
  // State in which the old data is still present.
  await mkdir(join(data, 'restored'));
  await writeFile(join(data, 'restored', 'revisions.db'), await readFile(database()));
  await writeFile(database(), 'damaged'.repeat(1000));
  const third = await begin();
  assert.deepEqual(await look(third), { revision: 6, keys: 5 });
  assert.equal((await kept()).length, 1);
  assert.ok(!(await readdir(data)).includes('restored'));
});
