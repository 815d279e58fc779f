/** Recovery of a cluster that lost its quorum from the data of a survivor. */
import assert from 'node:assert/strict';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import type { EtcdAdmin } from '../../../src/store/administration/port.ts';
import { createEtcdAdmin } from '../../../src/store/client/etcd-admin.ts';
import { createSqliteLog } from '../../../src/store/disk/index.ts';
import { EntryKind } from '../../../src/store/disk/port.ts';
import { endOf, recoverAlone } from '../../../src/store/recovery/quorum-loss.ts';
import { type ClusterMember, cluster, member } from '../cluster-harness.ts';
import { clock, remove, temporaryDirectory } from '../harness.ts';

let directory = '';
before(async () => {
  directory = await temporaryDirectory();
});
after(() => remove(directory));

function admin(...members: readonly ClusterMember[]): EtcdAdmin {
  return createEtcdAdmin({ endpoints: members.map(({ endpoint }) => endpoint), log: silentLog, clock });
}

async function put(store: EtcdAdmin, from: number, count: number): Promise<void> {
  for (let i = from; i < from + count; i += 1) {
    await store.putAll([{ key: `k${i}`, value: Buffer.from(`v${i}`), lease: 0n }]);
  }
}

async function keys(store: EtcdAdmin): Promise<string[]> {
  const { kvs } = await store.range({ key: 'k', end: 'l' });
  return kvs.map(({ key, value }) => `${key}=${value}`).sort();
}

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));

const numbered = (count: number): string[] => Array.from({ length: count }, (_, i) => `k${i}=v${i}`).sort();

test('the survivor of three members continues alone with all its data, and adds two new members', {
  timeout: 60_000,
}, async () => {
  const members = await cluster(directory, 3);
  const [survivor, ...lost] = members as [ClusterMember, ...ClusterMember[]];
  await Promise.all(members.map((each) => each.start()));
  const before = admin(...members);
  await put(before, 0, 30);
  const [firstMember] = await before.members();
  before.close();
  for (const each of lost) await each.stop();

  const alone = admin(survivor);
  const end = await alone.logEnd();
  assert.equal(end.name, 'm0');
  assert.ok(end.lastIndex >= end.commit && end.commit > 30);
  assert.equal(end.lastRevision, 31);
  // This write may or may not be kept, because it was never acknowledged.
  await assert.rejects(alone.putAll([{ key: 'unsure', value: Buffer.from(''), lease: 0n }]));
  await survivor.stop();

  let done = 0;
  const forced = {
    forceNewCluster: async () => {
      done += 1;
    },
  };
  await survivor.start(false, forced);
  assert.equal(done, 1);
  assert.deepEqual(await keys(alone), numbered(30));
  const listed = await alone.members();
  assert.deepEqual(
    listed.map(({ name, peerUrls }) => [name, peerUrls]),
    [['m0', [survivor.peerUrl]]],
  );
  const status = await alone.status();
  assert.ok(status.raftTerm > end.term, 'in a term of its own');
  assert.notEqual(firstMember, undefined);
  await put(alone, 30, 5);

  // Starting again with the flag changes nothing.
  await survivor.stop();
  await survivor.start(false, forced);
  assert.deepEqual(await keys(alone), numbered(35));

  const joined = [survivor];
  for (const name of ['n1', 'n2']) {
    const fresh = await member(directory, name, joined);
    await alone.addMember([fresh.peerUrl], false);
    await fresh.start(true);
    joined.push(fresh);
    const there = admin(fresh);
    assert.deepEqual(await keys(there), numbered(35));
    there.close();
    // The next member may be added only after this one has published its name.
    while (!(await alone.members()).some((each) => each.name === name)) await pause();
  }
  await put(alone, 35, 5);
  assert.deepEqual((await alone.members()).map(({ name }) => name).sort(), ['m0', 'n1', 'n2']);
  assert.deepEqual(
    joined.flatMap(({ fatal }) => fatal),
    [],
  );

  // A removed member that returns with its old data is notified and stops.
  const [old] = lost as [ClusterMember];
  await old.start().catch(() => {});
  for (let i = 0; i < 100 && old.fatal.length === 0; i += 1) await pause();
  assert.match(String(old.fatal[0]), /removed from the cluster/);
  alone.close();
  await Promise.all([...joined, old].map((each) => each.stop()));
});

test('recovery from a quorum loss keeps uncommitted log entries, except configuration changes', async () => {
  const [lone] = (await cluster(await mkdtemp(join(directory, 'log-')), 1)) as [ClusterMember];
  await lone.start();
  const store = admin(lone);
  await put(store, 0, 3);
  store.close();
  await lone.stop();

  const storage = createSqliteLog({ directory: lone.directory, log: silentLog });
  let state = await storage.open(assert.fail);
  const { lastIndex, lastRevision, memberId } = await endOf(state, storage);
  assert.equal(lastRevision, 4);
  const entry = { term: state.hardState.term, lease: 0n };
  const [row] = await storage.rows(lastRevision - 1, lastRevision);
  assert.ok(row !== undefined);
  const conf = Buffer.from('0a0508011201660a05080112016f', 'hex');
  await storage.commit({
    entries: [
      { ...entry, index: lastIndex + 1, kind: EntryKind.conf, revision: 0, body: conf },
      { ...entry, index: lastIndex + 2, kind: EntryKind.revision, revision: lastRevision + 1, body: row.body },
    ],
    discards: [],
  });
  const end = await endOf(state, storage);
  assert.deepEqual([end.lastRevision, end.lastIndex], [lastRevision + 1, lastIndex + 2]);
  assert.ok(
    end.revision <= lastRevision && end.commit <= lastIndex,
    'what comes after the known commits is not counted as committed',
  );
  state = await recoverAlone(state, storage);
  const entries = await storage.entries(lastIndex + 1, 1 << 20);
  assert.deepEqual(
    entries.map(({ kind, revision }) => [kind, revision]),
    [
      [EntryKind.noop, 0],
      [EntryKind.revision, lastRevision + 1],
    ],
  );
  assert.equal(state.hardState.commit, lastIndex + 2);
  assert.deepEqual((await endOf(state, storage)).voters, [memberId]);
  await storage.close();
});
