import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
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
