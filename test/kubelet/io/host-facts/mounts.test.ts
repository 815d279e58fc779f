import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createMounter } from '../../../../src/kubelet/io/host-facts/index.ts';

const mounts = createMounter();
let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'host-mounts-'));
});
after(async () => {
  await mounts.unmountTree(directory);
  await rm(directory, { recursive: true, force: true });
});

describe('tmpfs for secrets', () => {
  it('tmpfs for secrets is mounted once, and unmounted with all nested mounts', async () => {
    const target = join(directory, 'memory with space');
    await mkdir(target);
    await mounts.tmpfs(target, { mode: 0o755, sizeBytes: 1 << 20 });
    assert.equal(await mounts.isMountPoint(target), true);
    await chmod(target, 0o700);
    await mkdir(join(target, 'inner'));
    await mounts.tmpfs(join(target, 'inner'), { mode: 0o755 });
    await mounts.unmountTree(target);
    assert.equal(await mounts.isMountPoint(target), false);
    assert.deepEqual(await readdir(target), []);
    await mounts.unmountTree(target);
  });
  it('reports a failed mount of a tmpfs for secrets', async () => {
    await assert.rejects(mounts.tmpfs(join(directory, 'absent'), { mode: 0o755 }), {
      code: 'mount',
      message: /absent/,
    });
  });
});

describe('bind mounts of host directories', () => {
  it('are unmounted without the file systems that the host mounts below the directory', async () => {
    const run = promisify(execFile);
    const disk = join(directory, 'disk');
    const pod = join(directory, 'pod');
    await mkdir(disk);
    await mkdir(join(pod, 'volume'), { recursive: true });
    await mounts.tmpfs(disk, { mode: 0o755 });
    await run('mount', ['--make-shared', disk]);
    await run('mount', ['--bind', disk, join(pod, 'volume')]);
    await mkdir(join(disk, 'inner'));
    await mounts.tmpfs(join(disk, 'inner'), { mode: 0o755 });
    await writeFile(join(disk, 'inner/file'), '');
    assert.equal(await mounts.isMountPoint(join(pod, 'volume/inner')), true, 'the mount has propagated');
    await mounts.unmountTree(pod);
    assert.equal(await mounts.isMountPoint(join(pod, 'volume')), false);
    assert.deepEqual(await readdir(join(pod, 'volume')), []);
    assert.deepEqual(await readdir(join(disk, 'inner')), ['file']);
  });
});
