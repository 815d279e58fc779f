import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parseOsRelease } from '../../../../src/kubelet/io/host-facts/facts.ts';
import { createFileWatch, createHostFacts } from '../../../../src/kubelet/io/host-facts/index.ts';

describe('host facts', () => {
  const facts = createHostFacts({ root: '/', nowMs: () => 42 });

  it("host facts match the kernel's values", async () => {
    const info = await facts.info();
    assert.equal(info.memoryBytes, totalmem());
    assert.equal(info.cpus, cpus().length);
    assert.equal(info.bootId, (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim());
    assert.match(info.architecture, /^(amd64|arm64)$/);
    assert.notEqual(info.systemUuid, '');
    const usage = await facts.usage();
    assert.equal(usage.timestampMs, 42);
    assert.ok(usage.cpuUsageNanoSeconds > 0 && usage.memoryAvailableBytes > 0 && usage.processes > 1);
    assert.ok(usage.memoryWorkingSetBytes <= info.memoryBytes);
    const disk = await facts.fileSystem('/');
    assert.ok(disk.capacityBytes >= disk.availableBytes && disk.inodes >= disk.inodesFree);
  });

  it('host facts parse os-release as documented', () => {
    assert.deepEqual(
      { ...parseOsRelease('A="x y"\nB=\'z\'\nC=plain\n# D=no\nPRETTY_NAME="Debian GNU/Linux 12"\n__proto__=x\n') },
      { A: 'x y', B: 'z', C: 'plain', PRETTY_NAME: 'Debian GNU/Linux 12' },
    );
  });

  it('host facts contain the upstream resolver behind the stub of systemd-resolved', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'resolver-'));
    const [own, behindStub] = [join(directory, 'own'), join(directory, 'behind')];
    const facts = createHostFacts({ root: '/', nowMs: Date.now, resolverFiles: { own, behindStub } });
    try {
      await writeFile(own, 'nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch a.example\n');
      assert.match(await facts.resolvConf(), /127\.0\.0\.53/, 'without systemd-resolved');
      await writeFile(behindStub, 'nameserver 192.0.2.53\nsearch b.example\n');
      assert.equal(await facts.resolvConf(), 'nameserver 192.0.2.53\nsearch b.example\n');
      await writeFile(own, 'nameserver 192.0.2.1\n');
      assert.equal(await facts.resolvConf(), 'nameserver 192.0.2.1\n');
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });

  it('a directory watch calls back once for a burst of events and accepts a missing path', async () => {
    const path = join(tmpdir(), `watch-test-${process.pid}`);
    await writeFile(path, '');
    let calls = 0;
    const watch = createFileWatch().watch(path, () => {
      calls += 1;
    });
    try {
      for (let index = 0; index < 5; index += 1) await writeFile(path, String(index));
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.ok(calls >= 1 && calls <= 3, String(calls));
    } finally {
      watch.close();
      await rm(path);
    }
    createFileWatch()
      .watch(`${path}-absent`, () => {})
      .close();
  });
});
