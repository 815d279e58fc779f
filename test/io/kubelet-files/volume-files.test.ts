import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Payload } from '../../../src/components/kubelet/files-port.ts';
import { createMounter } from '../../../src/io/host/index.ts';
import { createKubeletFiles } from '../../../src/io/kubelet-files/index.ts';

let directory = '';
const mounts = createMounter();
const { writeAtomically, bindSubPath } = createKubeletFiles(mounts).volumes;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kubelet-files-'));
});
after(async () => {
  await mounts.unmountTree(directory);
  await rm(directory, { recursive: true, force: true });
});

const payload = (files: Record<string, string>): Payload =>
  new Map(Object.entries(files).map(([path, text]) => [path, { bytes: Buffer.from(text), mode: 0o640 }]));

describe('projected files', () => {
  it('change as one, and only when they differ', async () => {
    const volume = join(directory, 'volume');
    await mkdir(volume);
    assert.equal(await writeAtomically(volume, payload({ a: '1', 'd/b': '2' }), { nowMs: 0 }), true);
    assert.equal(await readFile(join(volume, 'a'), 'utf8'), '1');
    assert.equal(await readFile(join(volume, 'd/b'), 'utf8'), '2');
    assert.equal((await stat(join(volume, 'a'))).mode & 0o777, 0o640);
    assert.equal(await writeAtomically(volume, payload({ a: '1', 'd/b': '2' }), { nowMs: 1 }), false);
    assert.equal(await writeAtomically(volume, payload({ c: '3' }), { nowMs: 2 }), true);
    const names = (await readdir(volume)).sort();
    assert.equal(names.length, 3, names.join());
    assert.deepEqual(
      names.filter((name) => !name.startsWith('..')),
      ['c'],
    );
    assert.deepEqual(
      names.filter((name) => name === '..data'),
      ['..data'],
    );
  });

  it('never leave their volume', async () => {
    const volume = join(directory, 'inside');
    await mkdir(volume);
    for (const path of ['../x', '/x', 'a/../../x', '..x', '', 'a\0b']) {
      await assert.rejects(writeAtomically(volume, payload({ [path]: 'x' }), { nowMs: 0 }), /invalid path/, path);
    }
    assert.deepEqual(await readdir(volume), []);
  });
});

describe('sub-paths', () => {
  it('bind what is in the volume and make what is missing', async () => {
    const volume = join(directory, 'sub');
    await mkdir(volume);
    await chmod(volume, 0o3777);
    await writeFile(join(volume, 'file'), 'content');
    await bindSubPath(volume, 'x/y', join(directory, 'target/dir'));
    for (const each of ['x', 'x/y'])
      assert.equal((await stat(join(volume, each))).mode & 0o7777, 0o3777, 'the mode of the volume');
    await writeFile(join(directory, 'target/dir/z'), '');
    assert.deepEqual(await readdir(join(volume, 'x/y')), ['z']);
    await bindSubPath(volume, 'file', join(directory, 'target/file'));
    assert.equal(await readFile(join(directory, 'target/file'), 'utf8'), 'content');
    // Again, as after a restart of the kubelet: no second mount on top.
    await bindSubPath(volume, 'file', join(directory, 'target/file'));
    const mountinfo = await readFile('/proc/self/mountinfo', 'utf8');
    assert.equal(mountinfo.split(`${directory}/target/file`).length, 2);
  });

  it('follow the links that a projected volume is made of', async () => {
    const volume = join(directory, 'projected');
    await mkdir(volume);
    const target = join(directory, 'target/key');
    const bound = async (): Promise<string> => {
      await bindSubPath(volume, 'd/key', target);
      return readFile(target, 'utf8');
    };
    await writeAtomically(volume, payload({ 'd/key': 'one' }), { nowMs: 0 });
    assert.equal(await bound(), 'one');
    // A container that starts again sees what has been written since, and one mount is enough for it.
    await writeAtomically(volume, payload({ 'd/key': 'two' }), { nowMs: 1 });
    assert.equal(await readFile(target, 'utf8'), 'one');
    assert.equal(await bound(), 'two');
    assert.equal((await readFile('/proc/self/mountinfo', 'utf8')).split(` ${target} `).length, 2);
  });

  it('follow no link that leads out, wherever it stands, and nothing that climbs', async () => {
    const volume = join(directory, 'evil');
    await mkdir(join(volume, 'real'), { recursive: true });
    await mkdir(`${volume}-twin`);
    await symlink('/etc', join(volume, 'link'));
    await symlink('/etc/shadow', join(volume, 'real/last'));
    await symlink('../evil-twin', join(volume, 'twin'));
    await symlink('/nowhere/at/all', join(volume, 'dangling'));
    await symlink('round', join(volume, 'round'));
    for (const path of [
      'link',
      'link/passwd',
      'link/made',
      'real/last',
      'real/../../x',
      '/etc',
      'twin',
      'dangling',
      'dangling/x',
      'round',
    ]) {
      await assert.rejects(bindSubPath(volume, path, join(directory, 'evil-target')), path);
    }
    const mountinfo = await readFile('/proc/self/mountinfo', 'utf8');
    assert.ok(!mountinfo.includes('evil-target'));
  });
});
