/** Idmapped mounts of host directories below which the host has mounted further file systems. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { unmountBelow } from '../../../../src/runtime/oci/containers/sandbox.ts';
import { MappedRoot, mapMount } from '../../../../src/runtime/oci/spec/user-namespace.ts';

const run = promisify(execFile);
let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'he-mapped-volumes-'));
});
after(async () => {
  await unmountBelow(directory);
  await rm(directory, { recursive: true, force: true });
});

/** Calls `work` with the file of a user namespace that maps ids. */
async function withUserNamespace(work: (file: string) => Promise<void>): Promise<void> {
  const child = spawn('unshare', ['--user', 'cat']);
  try {
    child.stdin.write('\n');
    await once(child.stdout, 'data');
    for (const file of ['uid_map', 'gid_map']) await writeFile(`/proc/${child.pid}/${file}`, '0 65536 65536\n');
    await work(`/proc/${child.pid}/ns/user`);
  } finally {
    child.stdin.end();
  }
}

test('the end of a container with mapped volumes leaves the file systems of the host mounted', async () => {
  const disk = join(directory, 'disk');
  const mapped = join(directory, 'mapped');
  for (const path of [disk, mapped, join(mapped, 'm0')]) await mkdir(path);
  await run('mount', ['-t', 'tmpfs', 'tmpfs', disk]);
  await run('mount', ['--make-shared', disk]);
  const mount = async (name: string): Promise<void> => {
    await mkdir(join(disk, name));
    await run('mount', ['-t', 'tmpfs', 'tmpfs', join(disk, name)]);
    await writeFile(join(disk, name, 'file'), '');
  };
  await mount('before');
  await withUserNamespace((namespace) => mapMount(namespace, disk, join(mapped, 'm0')));
  await mount('later');
  assert.deepEqual(await readdir(join(mapped, 'm0/before')), ['file']);
  assert.deepEqual(await readdir(join(mapped, 'm0/later')), ['file'], 'mounts of the host still appear');
  await unmountBelow(mapped);
  assert.deepEqual(await readdir(join(mapped, 'm0')), []);
  assert.deepEqual(await readdir(join(disk, 'before')), ['file']);
  assert.deepEqual(await readdir(join(disk, 'later')), ['file']);
});

test('a mapped volume keeps the restrictions of its file system', async () => {
  const image = join(directory, 'image');
  await mkdir(image);
  await run('mount', ['-t', 'tmpfs', '-o', 'nosuid,nodev,noexec', 'tmpfs', image]);
  await withUserNamespace(async (namespace) => {
    const root = new MappedRoot(join(directory, 'container'), namespace, { hostId: 65_536, length: 65_536 });
    await root.make();
    const mount = { destination: '/image', type: 'bind', source: image, options: ['rbind', 'ro'] };
    const { source, options } = await root.mapVolume(mount);
    assert.equal(source, join(directory, 'container/m0'));
    assert.deepEqual(options, ['rbind', 'ro', 'nosuid', 'nodev', 'noexec']);
  });
});
