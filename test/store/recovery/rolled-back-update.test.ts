/** Stores during an update that is rolled back: the log level is not raised, and data of a newer build is reverted. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, it } from 'node:test';
import Database from 'better-sqlite3';
import { silentLog } from '../../../src/base/log.ts';
import { storeFiles } from '../../../src/host/store/store-files.ts';
import { createFallback } from '../../../src/store/administration/fallback.ts';
import { saveSnapshot } from '../../../src/store/administration/snapshots.ts';
import { createEtcdAdmin } from '../../../src/store/client/etcd-admin.ts';
import { createSqliteLog } from '../../../src/store/disk/index.ts';
import { NEWEST_LEVEL } from '../../../src/store/replication/maintenance/log-level.ts';
import type { EtcdServerDeps, Fallback } from '../../../src/store/server/server-port.ts';
import { EtcdClient } from '../../conformance/etcd/client.ts';
import { type ClusterMember, cluster } from '../cluster-harness.ts';
import { clock, remove, temporaryDirectory } from '../harness.ts';

const NEWER: Partial<EtcdServerDeps> = { logLevel: NEWEST_LEVEL + 1, levelOnRequest: true };
const OWN: Partial<EtcdServerDeps> = { levelOnRequest: true };
let directory = '';
let members: ClusterMember[] = [];

beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  await Promise.all(members.map((each) => each.stop()));
  members = [];
  await remove(directory);
});

const only = (): ClusterMember => {
  const [first] = members;
  assert.ok(first);
  return first;
};

async function level({ endpoint }: ClusterMember): Promise<number> {
  const text = await (await fetch(`${endpoint}/metrics`)).text();
  return Number(/^hyperedge_etcd_log_level (\d+)$/m.exec(text)?.[1] ?? 0);
}

async function admin<T>(
  { endpoint }: ClusterMember,
  use: (each: ReturnType<typeof createEtcdAdmin>) => Promise<T>,
): Promise<T> {
  const opened = createEtcdAdmin({ endpoints: [endpoint], log: silentLog, clock });
  try {
    return await use(opened);
  } finally {
    opened.close();
  }
}

async function client<T>({ endpoint }: ClusterMember, use: (each: EtcdClient) => Promise<T>): Promise<T> {
  const opened = new EtcdClient(endpoint);
  try {
    return await use(opened);
  } finally {
    opened.close();
  }
}

const put = (member: ClusterMember, key: string): Promise<unknown> =>
  client(member, (each) => each.put({ key, value: 'value' }));
const count = (member: ClusterMember, key: string): Promise<number> =>
  client(member, async (each) => Number((await each.range({ key })).count ?? 0));

async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let round = 0; round < 200; round++) {
    if (await holds().catch(() => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail(what);
}

/** The fallback of an update that was rolled back, with a snapshot taken now. */
async function saved(member: ClusterMember): Promise<() => Promise<Fallback>> {
  const file = join(directory, 'store-0.1.0.db');
  await admin(member, (each) => saveSnapshot(each, { file }, storeFiles, clock.nowMs()));
  return async () =>
    createFallback({
      dataDirectory: member.directory,
      storage: createSqliteLog({ directory: member.directory, log: silentLog }),
      name: member.name,
      peerUrls: [member.peerUrl],
      token: 'test',
      snapshots: { only: file },
      files: storeFiles,
      nowMs: clock.nowMs,
      log: silentLog,
    });
}

/** Simulates a newer build that has changed the tables. */
function changeTables({ directory: data }: ClusterMember): void {
  const db = new Database(join(data, 'revisions.db'));
  db.exec('ALTER TABLE lease ADD COLUMN owner TEXT');
  db.pragma('user_version = 5');
  db.close();
}

it('raises the level of a store only on request, so that each member can return to the former release', {
  timeout: 120_000,
}, async () => {
  members = await cluster(directory, 3);
  await Promise.all(members.map((each) => each.start(false, OWN)));
  await admin(only(), (each) => each.raiseLevel());
  for (const each of members) {
    await each.stop();
    await each.start(false, NEWER);
  }
  await put(only(), 'a');
  // Longer than a leader would need to raise the level by itself.
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  for (const each of members) assert.equal(await level(each), NEWEST_LEVEL, each.name);
  for (const each of members) {
    await each.stop();
    await each.start(false, OWN);
  }
  await put(only(), 'b');
  const report = { level: NEWEST_LEVEL, supported: NEWEST_LEVEL };
  assert.deepEqual(await admin(only(), (each) => each.raiseLevel()), report);
  assert.deepEqual(await admin(only(), (each) => each.level()), report);
  // The new level is committed first while one member has the former build, and then on all. Any member accepts the
  // request.
  for (const [index, each] of members.entries()) {
    await each.stop();
    await each.start(false, NEWER);
    if (index === 0)
      await eventually('a level that one member does not support', async () => {
        await admin(only(), (at) => at.raiseLevel());
        return (await level(only())) === NEWEST_LEVEL;
      });
  }
  for (const each of members)
    await eventually(
      'the request',
      async () => (await admin(each, (at) => at.raiseLevel())).level === NEWEST_LEVEL + 1,
    );
  for (const each of members) await eventually('the level', async () => (await level(each)) === NEWEST_LEVEL + 1);
});

it('after a rollback, a single member with a raised store level restores the snapshot from before the update', {
  timeout: 60_000,
}, async () => {
  members = await cluster(directory, 1);
  const one = only();
  await one.start(false, OWN);
  await put(one, 'before');
  const beforeUpdate = await saved(one);
  await one.stop();
  await one.start(false, NEWER);
  await put(one, 'after');
  await admin(one, (each) => each.raiseLevel());
  await one.stop();
  await assert.rejects(one.start(false, OWN), { code: 'too-old' });
  await one.start(false, { ...OWN, beforeUpdate });
  assert.equal(await count(one, 'before'), 1);
  assert.equal(await count(one, 'after'), 0);
  assert.ok((await level(one)) <= NEWEST_LEVEL);
  assert.match(
    await readFile(join(one.directory, 'WENT-BACK'), 'utf8'),
    /the store had the format of a newer release after the rollback of an update and was restored from .*store-0\.1\.0\.db/,
  );
  // The newer data is moved aside, and the next start needs no snapshot.
  assert.ok((await readdir(one.directory)).some((name) => name.startsWith('revisions.db.damaged-')));
  await one.stop();
  await one.start(false, OWN);
  assert.equal(await count(one, 'before'), 1);
});

it('after a rollback, a single member with a changed schema restores the snapshot, but never without a rollback', {
  timeout: 60_000,
}, async () => {
  members = await cluster(directory, 1);
  const one = only();
  await one.start(false, OWN);
  await put(one, 'before');
  const beforeUpdate = await saved(one);
  await one.stop();
  changeTables(one);
  await assert.rejects(one.start(false, { ...OWN, beforeUpdate: async () => undefined }), { code: 'schema-too-new' });
  await one.start(false, { ...OWN, beforeUpdate });
  assert.equal(await count(one, 'before'), 1);
});

it('after a rollback, one of three members with a changed schema receives its data from the other members', {
  timeout: 60_000,
}, async () => {
  members = await cluster(directory, 3);
  await Promise.all(members.map((each) => each.start(false, OWN)));
  const one = only();
  await put(one, 'before');
  const beforeUpdate = await saved(one);
  await one.stop();
  changeTables(one);
  await put(members[1] as ClusterMember, 'meanwhile');
  await one.start(false, { ...OWN, beforeUpdate });
  await eventually('the data of the other members', async () => (await count(one, 'meanwhile')) === 1);
  assert.equal(await count(one, 'before'), 1);
});
