/**
 * A host whose data are missing, for example on a disk that mounts late: it does not create a second cluster, and the
 * administrator decides.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Appliance, eventually } from './harness.ts';

let host: Appliance;
let work = '';
const data = (): string => join(host.root, 'var/lib/origin');
const store = (): string => join(data(), 'openshift.local.etcd');

before(async () => {
  work = await mkdtemp(join(tmpdir(), 'he-missing-'));
  host = await Appliance.create();
});
after(async () => {
  await host?.stop();
  await rm(work, { recursive: true, force: true });
});

async function refused(): Promise<string> {
  const from = host.output.length;
  host.launch();
  await eventually('the end of the host process', 60_000, () => host.exitCode);
  assert.notEqual(host.exitCode, 0);
  return host.output.slice(from);
}

const has = async (name: string): Promise<boolean> => (await host.kubectl(['get', 'configmap', name])).code === 0;

test('starts with the existing data when the missing data directory reappears', { timeout: 240_000 }, async () => {
  await host.start();
  const id = (await readFile(join(host.root, 'etc/etcd/cluster-id'), 'utf8')).trim();
  assert.match(id, /^[0-9a-f]{10,16}$/);
  await host.must(['create', 'configmap', 'kept', '--from-literal=k=v']);
  const snapshot = await host.hyperedge(['snapshot', 'save', join(work, 'store.db'), '--root', host.root]);
  assert.equal(snapshot.code, 0, snapshot.stderr);
  await host.halt('SIGTERM');
  await rename(data(), join(work, 'origin'));
  const reported = await refused();
  assert.match(
    reported,
    new RegExp(`the store of cluster ${id} is missing; mount its file system, run hyperedge snapshot restore`),
  );
  assert.match(reported, /hyperedge members new-cluster/);
  assert.equal(existsSync(store()), false, 'nothing is written where the file system belongs');
  await rm(data(), { recursive: true, force: true });
  await rename(join(work, 'origin'), data());
  await host.start();
  assert.equal(await has('kept'), true);
});

test('restores a snapshot when the data directory is missing', { timeout: 240_000 }, async () => {
  await host.halt('SIGTERM');
  await rm(store(), { recursive: true });
  assert.match(await refused(), /is missing/);
  const restored = await host.hyperedge(['snapshot', 'restore', join(work, 'store.db'), '--root', host.root]);
  assert.equal(restored.code, 0, restored.stderr);
  await host.start();
  assert.equal(await has('kept'), true);
});

test('creates a new cluster only on request when the data directory is missing', { timeout: 240_000 }, async () => {
  const early = await host.hyperedge(['members', 'new-cluster', '--root', host.root]);
  assert.notEqual(early.code, 0);
  assert.match(early.stderr, /this host has a store; run hyperedge reset/);
  await host.halt('SIGTERM');
  await rm(store(), { recursive: true });
  assert.match(await refused(), /is missing/);
  const given = await host.hyperedge(['members', 'new-cluster', '--root', host.root]);
  assert.equal(given.code, 0, given.stderr);
  await host.start();
  assert.equal(await has('kept'), false);
  assert.ok(existsSync(join(host.root, 'etc/etcd/cluster-id')));
});
