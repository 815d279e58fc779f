/** Removal of the data while file systems are mounted in it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { loadSettings } from '../../../src/host/config/settings.ts';
import { backUpData } from '../../../src/host/install/data-backup.ts';
import { createMounter } from '../../../src/kubelet/io/host-facts/index.ts';

const run = promisify(execFile);
const ETCD = 'var/lib/origin/openshift.local.etcd';
let root: string;

async function write(path: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), 'data');
}

async function mount(path: string): Promise<void> {
  await mkdir(join(root, path), { recursive: true });
  await run('mount', ['-t', 'tmpfs', 'tmpfs', join(root, path)]);
}

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'he-backup-')));
  await write('var/lib/origin/images/image');
});
afterEach(async () => {
  await createMounter().unmountTree(root);
  await rm(root, { recursive: true, force: true });
});

for (const purge of [false, true]) {
  describe(purge ? 'a removal of the data' : 'a backup of the data', () => {
    it('empties the file system of a data directory and keeps it mounted', async () => {
      await mount(ETCD);
      await write(`${ETCD}/member/db`);
      const kept = await backUpData(await loadSettings({ root }), purge, 0);
      assert.deepEqual(await readdir(join(root, ETCD)), []);
      assert.ok(await createMounter().isMountPoint(join(root, ETCD)));
      assert.deepEqual(await readdir(join(root, 'var/lib/origin')), ['openshift.local.etcd']);
      if (purge) assert.equal(kept, undefined);
      else assert.equal(await readFile(join(kept ?? '', ETCD, 'member/db'), 'utf8'), 'data');
    });

    for (const left of [
      'var/lib/origin/openshift.local.volumes/pods/u/volumes/nfs/share',
      'var/lib/origin/containers/c/rootfs',
      'var/lib/origin/disk',
      'run/hyperedge/containers/mapped/c/m0',
    ]) {
      it(`stops before the first change while a file system is mounted at ${left}`, async () => {
        await mount(left);
        await write(`${left}/file`);
        const rejected = { code: 'in-use', message: new RegExp(`${left}: .*unmount it`) };
        await assert.rejects(backUpData(await loadSettings({ root }), purge, 0), rejected);
        assert.equal(await readFile(join(root, left, 'file'), 'utf8'), 'data');
        assert.deepEqual(await readdir(join(root, 'var/lib/origin/images')), ['image']);
      });
    }
  });
}

it('a removal of the data reports a directory that cannot be read instead of keeping its data silently', async () => {
  await mkdir(join(root, 'var/log'), { recursive: true });
  await symlink('pods', join(root, 'var/log/pods'));
  await assert.rejects(backUpData(await loadSettings({ root }), true, 0), /ELOOP/);
});
