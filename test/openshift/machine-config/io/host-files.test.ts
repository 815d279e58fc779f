import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { watchPath } from '../../../../src/kubelet/io/host-facts/index.ts';
import type { Entry, Tree } from '../../../../src/openshift/machine-config/core/ignition/port.ts';
import { createDisk } from '../../../../src/openshift/machine-config/io/disk.ts';
import { createHostFiles } from '../../../../src/openshift/machine-config/io/host-files.ts';
import { createDirectoryWatch } from '../../../../src/openshift/machine-config/io/watch.ts';

const uid = process.getuid?.() ?? 0;
const gid = process.getgid?.() ?? 0;
const file = (text: string, mode = 0o644): Entry => ({
  kind: 'file',
  bytes: new TextEncoder().encode(text),
  mode,
  user: uid,
  group: gid,
});
const tree = (...entries: readonly (readonly [string, Entry])[]): Tree => new Map(entries);

async function withHost(act: (root: string, files: ReturnType<typeof createHostFiles>) => Promise<void>) {
  const root = await mkdtemp(join(tmpdir(), 'mc-daemon-'));
  try {
    await mkdir(join(root, 'etc'));
    await act(root, createHostFiles(createDisk(root), createDirectoryWatch(root, watchPath)));
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

test('writes files with their modes and restores the original files', { skip: uid !== 0 }, () =>
  withHost(async (root, files) => {
    await writeFile(join(root, 'etc/motd'), 'original', { mode: 0o600 });
    assert.equal(await files.open(), undefined);
    const entries = tree(['/etc/motd', file('mine', 0o664)], ['/etc/new/a', file('a')]);
    await files.apply(entries, { config: 'one' });
    assert.equal(await readFile(join(root, 'etc/motd'), 'utf8'), 'mine');
    assert.equal((await stat(join(root, 'etc/motd'))).mode & 0o777, 0o664);
    assert.equal(await readFile(join(root, 'etc/new/a'), 'utf8'), 'a');
    assert.deepEqual(await files.differences(), []);
    const again = createHostFiles(createDisk(root), createDirectoryWatch(root, watchPath));
    assert.deepEqual(await again.open(), { config: 'one' });
    await again.apply(tree(), { config: 'none' });
    assert.equal(await readFile(join(root, 'etc/motd'), 'utf8'), 'original');
    assert.equal((await stat(join(root, 'etc/motd'))).mode & 0o777, 0o600);
    await assert.rejects(stat(join(root, 'etc/new')), /ENOENT/);
  }),
);

test('rejects a symbolic link in a path and writes no file through the link', { skip: uid !== 0 }, () =>
  withHost(async (root, files) => {
    await mkdir(join(root, 'elsewhere'));
    await symlink('../elsewhere', join(root, 'etc/link'));
    await files.open();
    await assert.rejects(
      files.apply(tree(['/etc/ok', file('ok')], ['/etc/link/a', file('a')]), null),
      /\/etc\/link is not a directory; symbolic links are not followed/,
    );
    await assert.rejects(files.apply(tree(['/etc/link/deep/a', file('a')]), null), /\/etc\/link is not a directory/);
    await assert.rejects(stat(join(root, 'elsewhere/a')), /ENOENT/);
    await assert.rejects(stat(join(root, 'etc/ok')), /ENOENT/);
    await mkdir(join(root, 'etc/dir'));
    await assert.rejects(files.apply(tree(['/etc/dir', file('a')]), null), /\/etc\/dir: is a directory/);
  }),
);

test('detects a changed content, file mode or directory, and names the difference', { skip: uid !== 0 }, () =>
  withHost(async (root, files) => {
    await files.open();
    await files.apply(tree(['/etc/deep/a', file('expected')], ['/etc/l', { kind: 'link', target: '/x' }]), null);
    const changed = new EventTarget();
    const watch = files.watch(() => changed.dispatchEvent(new Event('change')));
    const noticed = async (act: () => Promise<void>, difference: RegExp): Promise<void> => {
      const event = once(changed, 'change', { signal: AbortSignal.timeout(2_000) });
      await act();
      await event;
      assert.match((await files.differences()).join('\n'), difference);
    };
    const path = join(root, 'etc/deep/a');
    await noticed(() => writeFile(path, 'secret'), /^content mismatch for file "\/etc\/deep\/a": expected 8 bytes/);
    assert.doesNotMatch((await files.differences()).join(), /secret/);
    await noticed(() => writeFile(path, 'expected'), /^$/);
    await noticed(() => chmod(path, 0o600), /^mode mismatch for file "\/etc\/deep\/a": expected 0644; received 0600$/);
    await noticed(() => rm(join(root, 'etc/deep'), { recursive: true }), /could not stat file "\/etc\/deep\/a"/);
    // A directory that is created again is watched again.
    await noticed(async () => {
      await mkdir(join(root, 'etc/deep'));
      await writeFile(path, 'other');
    }, /mismatch/);
    await noticed(() => rm(join(root, 'etc/l')), /could not stat file "\/etc\/l"/);
    watch.close();
  }),
);

/** Replaces a directory by a link to `victim` whenever it appears, until the first shared integer is 1. */
const SWAP = `
const { workerData: { at, victim, stop } } = require('node:worker_threads');
const fs = require('node:fs');
let serial = 0;
while (Atomics.load(stop, 0) === 0) {
  try {
    fs.renameSync(at, at + '-aside-' + serial++);
    fs.symlinkSync(victim, at);
  } catch {}
}`;

test('changes no mode through a link that replaces a new directory', { skip: uid !== 0 }, () =>
  withHost(async (root) => {
    const [at, victim] = [join(root, 'etc/home'), join(root, 'victim')];
    await writeFile(victim, 'secret', { mode: 0o600 });
    const stop = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(SWAP, { eval: true, workerData: { at, victim, stop } });
    await once(worker, 'online');
    try {
      const disk = createDisk(root);
      for (let attempt = 0; attempt < 100; attempt++) {
        await disk.makeDirectory('/etc/home', { mode: 0o755, uid, gid }).catch(() => undefined);
        assert.equal((await stat(victim)).mode & 0o777, 0o600, `attempt ${attempt}`);
        await rm(at, { recursive: true, force: true });
      }
    } finally {
      Atomics.store(stop, 0, 1);
      await once(worker, 'exit');
    }
  }),
);
