import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createCgroupFileSystem } from '../../../../src/kubelet/io/cgroupfs/index.ts';
import { parseHierarchies } from '../../../../src/kubelet/io/cgroupfs/mountinfo.ts';

describe('mounted hierarchies', () => {
  it('mounted hierarchies are distinguished by version and controllers', () => {
    const hybrid = `
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:32 / /mnt/again rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,release_agent=/lib/agent,name=systemd
41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw - cgroup2 cgroup2 rw,nsdelegate
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw`;
    assert.deepEqual(parseHierarchies(hybrid), [
      { mount: '/sys/fs/cgroup/cpu,cpuacct', version: 'v1', controllers: ['cpu', 'cpuacct'] },
      { mount: '/sys/fs/cgroup/memory', version: 'v1', controllers: ['memory'] },
      { mount: '/sys/fs/cgroup/systemd', version: 'v1', controllers: ['name=systemd'] },
      { mount: '/sys/fs/cgroup/uni fied', version: 'v2', controllers: [] },
    ]);
  });

  it('creates cgroups, writes values, and removes cgroups with their processes', async () => {
    const files = createCgroupFileSystem();
    const [hierarchy] = await files.hierarchies();
    assert.ok(hierarchy !== undefined);
    const directory = `${hierarchy.mount}/cgroupfs-test-${process.pid}`;
    try {
      await files.perform([{ op: 'mkdir', directory: join(directory, 'inner') }]);
      await files.perform([{ op: 'mkdir', directory: join(directory, 'inner') }]);
      assert.deepEqual(await files.list(directory), ['inner']);
      await files.perform([{ op: 'write', directory, file: 'no.such.knob', value: '1', optional: true }]);
      await assert.rejects(
        files.perform([{ op: 'write', directory, file: 'no.such.knob', value: '1', optional: false }]),
        { code: 'cgroup-write', message: /no\.such\.knob/ },
      );
      assert.equal(await files.read(directory, 'no.such.knob'), undefined);
      const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
      const exited = once(child, 'exit');
      await writeFile(join(directory, 'inner/cgroup.procs'), String(child.pid));
      assert.equal((await readFile(join(directory, 'inner/cgroup.procs'), 'utf8')).trim(), String(child.pid));
      await files.removeTree(directory);
      assert.equal((await exited)[1], 'SIGKILL');
    } finally {
      await files.removeTree(directory);
    }
    await assert.rejects(access(directory));
    assert.deepEqual(await files.list(directory), []);
  });
});
