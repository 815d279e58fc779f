/** Snapshot commands between this store and Debian's etcd, compared with Debian's etcdctl. */
import assert from 'node:assert/strict';
import { access, mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { storeFiles } from '../../../src/host/store/store-files.ts';
import { pruneSnapshots } from '../../../src/store/administration/snapshots.ts';
import { done, etcdctl, hyperedge, killAll, run, type Store, start } from '../../host/stores.ts';
import { freePort } from '../../support/ports.ts';

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hyperedge-snapshots-'));
});
after(() => rm(directory, { recursive: true, force: true }));

afterEach(killAll);

/** Writes many kinds of keys: overwritten, deleted, with a lease, with binary data, and in transactions. */
async function fill(endpoint: string): Promise<string> {
  for (let i = 0; i < 20; i += 1) await etcdctl(endpoint, 'put', `/registry/pods/p${i}`, `value ${i}`);
  for (let i = 0; i < 5; i += 1) await etcdctl(endpoint, 'put', '/registry/pods/p3', `again ${i}`);
  await etcdctl(endpoint, 'del', '/registry/pods/p4');
  await etcdctl(endpoint, 'put', '/registry/\u{1f4be}', 'k\u00f6r\u00ad\u0001');
  const [, lease = ''] = /lease (\w+) granted/.exec(await etcdctl(endpoint, 'lease', 'grant', '4000')) ?? [];
  await etcdctl(endpoint, 'put', '/registry/events/e', 'with a lease', `--lease=${lease}`);
  await etcdctl(endpoint, 'put', '--', '-', '');
  await etcdctl(endpoint, 'del', '/registry/pods/p5');
  return lease;
}

interface Key {
  readonly key: string;
  readonly value?: string;
  readonly version: number;
  readonly create_revision: number;
  readonly mod_revision: number;
  readonly lease?: number;
}

async function everything(endpoint: string): Promise<{ readonly revision: number; readonly keys: readonly Key[] }> {
  const { header, kvs = [] } = JSON.parse(await etcdctl(endpoint, 'get', '', '--prefix', '-w', 'json'));
  return { revision: header.revision, keys: kvs };
}

const plain = (keys: readonly Key[]): unknown[] => keys.map(({ key, value, lease }) => ({ key, value, lease }));

test('saves, verifies and restores a snapshot with every key unchanged, in a new cluster', {
  timeout: 120_000,
}, async () => {
  const first = await start('ours', { name: 'a', data: join(directory, 'a') });
  const lease = await fill(first.endpoint);
  const before = await everything(first.endpoint);
  const file = join(directory, 'a.db');
  const at = ['--endpoints', first.endpoint];
  assert.match(await done('snapshot', 'save', file, ...at), new RegExp(`revision ${before.revision},`));
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  // Debian's etcdctl saves the same snapshot.
  await etcdctl(first.endpoint, 'snapshot', 'save', join(directory, 'ctl.db'));
  const status = JSON.parse(await done('snapshot', 'status', file, '-o', 'json'));
  assert.equal(status.revision, before.revision);
  assert.equal(status.keys, before.keys.length);
  const theirs = JSON.parse(await done('snapshot', 'status', join(directory, 'ctl.db'), '-o', 'json'));
  assert.deepEqual([theirs.revision, theirs.hash], [status.revision, status.hash]);
  const [{ Status }] = JSON.parse(await etcdctl(first.endpoint, 'endpoint', 'status', '-w', 'json'));
  await first.stop();

  const data = join(directory, 'restored');
  const ports = [await freePort(), await freePort()] as const;
  const peer = `http://127.0.0.1:${ports[1]}`;
  const named = ['--name', 'b', '--initial-advertise-peer-urls', peer, '--initial-cluster-token', 'again'];
  await done('snapshot', 'restore', file, '--data-dir', data, ...named);
  const refused = await hyperedge('snapshot', 'restore', file, '--data-dir', data, ...named);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /restored is not empty; stop the store and move it away/);
  const second = await start('ours', { name: 'b', data, ports });
  const after = await everything(second.endpoint);
  assert.deepEqual(after, before);
  const [{ Status: restored }] = JSON.parse(await etcdctl(second.endpoint, 'endpoint', 'status', '-w', 'json'));
  assert.notEqual(restored.header.cluster_id, Status.header.cluster_id);
  assert.notEqual(restored.header.member_id, Status.header.member_id);
  assert.match(
    await etcdctl(second.endpoint, 'lease', 'timetolive', lease, '--keys'),
    /granted with TTL\(4000s\).*events\/e/,
  );
  assert.match(await etcdctl(second.endpoint, 'member', 'list'), new RegExp(` b, ${peer}`));
  await etcdctl(second.endpoint, 'put', 'goes', 'on');
});

test('compacts all revisions before --bump-revision, so that no watch continues from an older revision', {
  timeout: 120_000,
}, async () => {
  const first = await start('ours', { name: 'a', data: join(directory, 'bump-a') });
  await fill(first.endpoint);
  const before = await everything(first.endpoint);
  const file = join(directory, 'bump.db');
  await done('snapshot', 'save', file, '--endpoints', first.endpoint);
  await first.stop();
  const data = join(directory, 'bump-b');
  const half = await hyperedge('snapshot', 'restore', file, '--data-dir', data, '--bump-revision', '1000');
  assert.equal(half.code, 2);
  await done('snapshot', 'restore', file, '--data-dir', data, '--bump-revision', '1000', '--mark-compacted');
  const second = await start('ours', { name: 'default', data });
  const after = await everything(second.endpoint);
  assert.deepEqual(after.keys, before.keys);
  assert.equal(after.revision, before.revision + 1000);
  const old = await run('/usr/bin/etcdctl', ['--endpoints', second.endpoint, 'get', 'x', `--rev=${before.revision}`], {
    ETCDCTL_API: '3',
  });
  assert.match(old.err, /required revision has been compacted/);
  await etcdctl(second.endpoint, 'put', 'goes', 'on');
  await second.stop();
  const again = await start('ours', { name: 'default', data });
  assert.equal((await everything(again.endpoint)).revision, before.revision + 1001);
});

test('restores one snapshot on three members, which form one cluster', { timeout: 120_000 }, async () => {
  const first = await start('ours', { name: 'a', data: join(directory, 'three-a') });
  await fill(first.endpoint);
  const before = await everything(first.endpoint);
  const file = join(directory, 'three.db');
  await done('snapshot', 'save', file, '--endpoints', first.endpoint);
  await first.stop();
  const ports: Array<readonly [number, number]> = [];
  for (let i = 0; i < 3; i += 1) ports.push([await freePort(), await freePort()]);
  const all = ports.map(([, peer], i) => `m${i}=http://127.0.0.1:${peer}`).join();
  const data = (i: number): string => join(directory, `three-m${i}`);
  for (let i = 0; i < 3; i += 1) {
    await done('snapshot', 'restore', file, '--data-dir', data(i), '--name', `m${i}`, '--initial-cluster', all);
  }
  const stores = await Promise.all(
    ports.map((pair, i) =>
      start('ours', { name: `m${i}`, data: data(i), ports: pair, args: ['--initial-cluster', all] }),
    ),
  );
  const [one, two] = stores as [Store, Store];
  await etcdctl(one.endpoint, 'put', 'goes', 'on');
  const after = await everything(two.endpoint);
  assert.deepEqual(
    after.keys.filter(({ key }) => key !== Buffer.from('goes').toString('base64')),
    before.keys,
  );
  for (let tries = 0; ; tries += 1) {
    const { code, out, err } = await hyperedge('members', '--endpoints', one.endpoint, '-o', 'json');
    const members = code === 0 ? JSON.parse(out) : [];
    if (members.every(({ state, lag }: { state: string; lag: number }) => state === 'ok' && lag === 0)) {
      assert.deepEqual(members.map(({ name }: { name: string }) => name).sort(), ['m0', 'm1', 'm2']);
      assert.equal(members.filter(({ role }: { role: string }) => role === 'leader').length, 1);
      break;
    }
    assert.ok(tries < 20, err);
  }
});

test("imports a snapshot of Debian's etcd with its revisions, and exports one that etcd can restore", {
  timeout: 120_000,
}, async (t) => {
  if (
    !(await access('/usr/bin/etcd').then(
      () => true,
      () => false,
    ))
  )
    return t.skip('Debian’s etcd is not installed');
  const theirs = await start('debian', { name: 'd', data: join(directory, 'debian') });
  const lease = await fill(theirs.endpoint);
  const before = await everything(theirs.endpoint);
  const data = join(directory, 'taken-over');
  const output = await done('snapshot', 'restore', '--from-etcd', '--endpoints', theirs.endpoint, '--data-dir', data);
  assert.match(output, new RegExp(`${before.keys.length} keys and 1 leases at revision ${before.revision}`));
  const snapshot = join(directory, 'debian.db');
  await etcdctl(theirs.endpoint, 'snapshot', 'save', snapshot);
  assert.match((await hyperedge('snapshot', 'status', snapshot)).err, /is a snapshot of etcd, .*--from-etcd/);
  await theirs.stop();

  const ours = await start('ours', { name: 'default', data });
  assert.deepEqual(await everything(ours.endpoint), before);
  assert.match(await etcdctl(ours.endpoint, 'lease', 'timetolive', lease, '--keys'), /events\/e/);
  await etcdctl(ours.endpoint, 'put', 'goes', 'on');
  const last = await everything(ours.endpoint);
  const file = join(directory, 'ours.db');
  await done('snapshot', 'save', file, '--endpoints', ours.endpoint);

  const other = await start('debian', { name: 'e', data: join(directory, 'debian-2') });
  assert.match(
    await done('snapshot', 'push', file, '--endpoints', other.endpoint),
    new RegExp(`${last.keys.length} keys and 1 leases written`),
  );
  assert.deepEqual(plain((await everything(other.endpoint)).keys), plain(last.keys));
  const twice = await hyperedge('snapshot', 'push', file, '--endpoints', other.endpoint);
  assert.match(twice.err, /holds \d+ keys already; empty it, or give --overwrite/);
  await done('snapshot', 'push', file, '--endpoints', other.endpoint, '--overwrite');
});

test('rejects a changed, truncated or foreign snapshot file, and leaves no partial data', {
  timeout: 60_000,
}, async () => {
  const store = await start('ours', { name: 'a', data: join(directory, 'damage') });
  await fill(store.endpoint);
  const own = join(directory, 'kept');
  const at = ['--endpoints', store.endpoint, '--directory', own];
  await done('snapshot', 'save', ...at);
  await etcdctl(store.endpoint, 'put', 'one', 'more');
  await done('snapshot', 'save', ...at);
  const names = (await readdir(own)).sort();
  assert.equal(names.length, 2);
  const [first = ''] = names;
  const file = join(own, first);
  const bytes = await readFile(file);
  bytes[bytes.indexOf('again 4')] = 0x41;
  await writeFile(file, bytes);
  assert.match(await done('snapshot', 'save', ...at, '--if-changed'), /unchanged since the newest snapshot/);
  const listed = await hyperedge('snapshot', 'list', '--directory', own);
  assert.equal(listed.code, 1);
  assert.match(listed.out, /yes\n[^\n]*NO\n$/);
  assert.match((await hyperedge('snapshot', 'status', file)).err, /is damaged: it does not match the SHA-256/);
  const data = join(directory, 'never');
  const restore = ['snapshot', 'restore', file, '--data-dir', data];
  assert.match((await hyperedge(...restore)).err, /is damaged: it does not match the SHA-256/);
  // The rows have checksums of their own.
  assert.match((await hyperedge(...restore, '--skip-hash-check')).err, /revision \d+ is damaged/);
  // Surplus snapshots are deleted, oldest first. Files that the command did not create are kept.
  await writeFile(join(own, 'mine.db'), '');
  // A snapshot of the same revision and second would have the same file name.
  await etcdctl(store.endpoint, 'put', 'one', 'more still');
  await done('snapshot', 'save', ...at, '--keep', '2');
  assert.deepEqual(
    (await readdir(own)).filter((name) => name === first || name === 'mine.db'),
    ['mine.db'],
  );
  await writeFile(file, bytes);
  await truncate(file, 5000);
  assert.match((await hyperedge('snapshot', 'status', file)).err, /no SHA-256 at its end/);
  await assert.rejects(access(data));
  assert.deepEqual(
    (await readdir(directory)).filter((name) => name.endsWith('.restoring')),
    [],
  );
});

test('keeps the snapshots with the highest revisions, and always the one just saved, regardless of their dates', async () => {
  const own = join(directory, 'pruned');
  await mkdir(own);
  const names = [
    'etcd-9-20261122T040836Z.db',
    'etcd-31-20261122T040836Z.db',
    'etcd-4-20271122T040836Z.db',
    'etcd-40-20010101T000001Z.db',
  ];
  for (const name of [...names, 'mine.db']) await writeFile(join(own, name), '');
  const [first = '', second = '', future = '', saved = ''] = names;
  assert.deepEqual(await pruneSnapshots(own, 3, join(own, saved), storeFiles), [join(own, future)]);
  assert.deepEqual(await pruneSnapshots(own, 2, join(own, saved), storeFiles), [join(own, first)]);
  assert.deepEqual((await readdir(own)).sort(), [second, saved, 'mine.db'].sort());
});
