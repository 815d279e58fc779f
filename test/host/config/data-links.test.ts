import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { resolvedLinks } from '../../../src/host/config/data-links.ts';
import { loadSettings } from '../../../src/host/config/settings.ts';
import { backUpData } from '../../../src/host/install/data-backup.ts';

let root: string;
let disk: string;

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'he-root-')));
  disk = await realpath(await mkdtemp(join(tmpdir(), 'he-disk-')));
  await mkdir(join(root, 'var/lib'), { recursive: true });
});
afterEach(async () => {
  for (const directory of [root, disk]) await rm(directory, { recursive: true, force: true });
});

test('resolves links in the directories of mounts, even before the directories exist', async () => {
  await symlink(join(disk, 'origin'), join(root, 'var/lib/origin'));
  const { paths } = await loadSettings({ root });
  assert.equal(paths.volumes, join(disk, 'origin/openshift.local.volumes'));
  assert.equal(paths.containers, join(disk, 'origin/containers'));
  assert.equal(paths.etcdData, join(root, 'var/lib/origin/openshift.local.etcd'));
});

test('resolves relative links and chains of links, and detects a loop', async () => {
  await mkdir(join(disk, 'data'));
  await symlink('data', join(disk, 'second'));
  await symlink(join(disk, 'second'), join(root, 'first'));
  assert.equal(await resolvedLinks(join(root, 'first/a')), join(disk, 'data/a'));
  await symlink('loop', join(root, 'loop'));
  assert.equal(await resolvedLinks(join(root, 'loop')), join(root, 'loop'));
});

for (const purge of [false, true]) {
  test(`removal ${purge ? 'purges' : 'keeps'} the data behind links and keeps the links`, async () => {
    await mkdir(join(root, 'var/lib/origin'));
    await mkdir(join(disk, 'etcd'));
    await mkdir(join(disk, 'containers'));
    await symlink(join(disk, 'etcd'), join(root, 'var/lib/origin/openshift.local.etcd'));
    await symlink(join(disk, 'containers'), join(root, 'var/lib/origin/containers'));
    await writeFile(join(disk, 'etcd/db'), 'data');
    await writeFile(join(disk, 'containers/state'), 'state');
    const counts: string[] = [];
    const kept = await backUpData(await loadSettings({ root }), purge, 0, (done, total) =>
      counts.push(`${done}/${total}`),
    );
    // Only the database behind its link is counted, because the containers are removed together with their directory.
    assert.deepEqual(counts, ['1/1']);
    assert.deepEqual(await readdir(join(disk, 'etcd')), []);
    assert.deepEqual(await readdir(join(disk, 'containers')), []);
    assert.deepEqual((await readdir(join(root, 'var/lib/origin'))).sort(), ['containers', 'openshift.local.etcd']);
    if (purge) assert.equal(kept, undefined);
    else assert.deepEqual(await readdir(join(kept ?? '', 'var/lib/origin/openshift.local.etcd')), ['db']);
  });
}
