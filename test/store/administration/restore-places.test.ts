/** Data directories into which a snapshot is restored: mount points and symbolic links. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { lstat, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { createMounter } from '../../../src/kubelet/io/host-facts/index.ts';
import { done, etcdctl, hyperedge, killAll, start } from '../../host/stores.ts';

let directory = '';
let file = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hyperedge-restore-'));
  file = join(directory, 'a.db');
  const first = await start('ours', { name: 'a', data: join(directory, 'a') });
  await etcdctl(first.endpoint, 'put', 'key', 'kept');
  await done('snapshot', 'save', file, '--endpoints', first.endpoint);
});
afterEach(killAll);
after(async () => {
  await createMounter().unmountTree(directory);
  await rm(directory, { recursive: true, force: true });
});

async function restoreInto(data: string): Promise<void> {
  await done('snapshot', 'restore', file, '--data-dir', data, '--name', 'a');
  const restored = await start('ours', { name: 'a', data });
  assert.match(await etcdctl(restored.endpoint, 'get', 'key'), /kept/);
}

test('restores into a file system that is mounted as the data directory', { timeout: 120_000 }, async () => {
  const data = join(directory, 'mounted');
  await mkdir(data);
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', data]);
  // A new ext4 file system has this directory. An interrupted restore has left the other one.
  for (const name of ['lost+found', '.restoring']) await mkdir(join(data, name));
  await writeFile(join(data, '.restoring/part'), '');
  await restoreInto(data);
  assert.deepEqual(
    (await readdir(data)).filter((name) => name === '.restoring'),
    [],
  );
  const again = await hyperedge('snapshot', 'restore', file, '--data-dir', data, '--name', 'a');
  assert.match(again.err, /mounted is not empty; stop the store and move its files away/);
});

test('restores into a directory that is bound from the same file system', { timeout: 120_000 }, async () => {
  const [disk, data] = [join(directory, 'disk'), join(directory, 'bound')];
  for (const each of [disk, data]) await mkdir(each);
  execFileSync('mount', ['--bind', disk, data]);
  await restoreInto(data);
});

test('restores through a symbolic link, which is kept', { timeout: 120_000 }, async () => {
  const link = join(directory, 'link');
  await mkdir(join(directory, 'target'));
  await symlink('target', link);
  await restoreInto(link);
  assert.equal((await lstat(link)).isSymbolicLink(), true);
});
