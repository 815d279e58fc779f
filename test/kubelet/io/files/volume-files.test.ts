import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createKubeletFiles } from '../../../../src/kubelet/io/files/index.ts';
import { createMounter } from '../../../../src/kubelet/io/host-facts/index.ts';
import type { Payload } from '../../../../src/kubelet/ports/files-port.ts';

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
  it('projected files are replaced atomically, and only if their content differs', async () => {
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

  it('projected files cannot be written outside of their volume', async () => {
    const volume = join(directory, 'inside');
    await mkdir(volume);
    for (const path of ['../x', '/x', 'a/../../x', '..x', '', 'a\0b']) {
      await assert.rejects(writeAtomically(volume, payload({ [path]: 'x' }), { nowMs: 0 }), /invalid path/, path);
    }
    assert.deepEqual(await readdir(volume), []);
  });
});

describe('sub-paths', () => {
  it('sub-paths bind existing paths of the volume and create missing paths', async () => {
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
    // Repeated as after a restart of the kubelet: there must be no second mount on top.
    await bindSubPath(volume, 'file', join(directory, 'target/file'));
    const mountinfo = await readFile('/proc/self/mountinfo', 'utf8');
    assert.equal(mountinfo.split(`${directory}/target/file`).length, 2);
  });

  it('sub-paths resolve the symbolic links of a projected volume', async () => {
    const volume = join(directory, 'projected');
    await mkdir(volume);
    const target = join(directory, 'target/key');
    const bound = async (): Promise<string> => {
      await bindSubPath(volume, 'd/key', target);
      return readFile(target, 'utf8');
    };
    await writeAtomically(volume, payload({ 'd/key': 'one' }), { nowMs: 0 });
    assert.equal(await bound(), 'one');
    // A restarted container gets the new content, with a single mount.
    await writeAtomically(volume, payload({ 'd/key': 'two' }), { nowMs: 1 });
    assert.equal(await readFile(target, 'utf8'), 'one');
    assert.equal(await bound(), 'two');
    assert.equal((await readFile('/proc/self/mountinfo', 'utf8')).split(` ${target} `).length, 2);
  });

  it('sub-paths reject `..` and links out of the volume at any position', async () => {
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

describe('group ownership', () => {
  const { ownByGroup } = createKubeletFiles(mounts).volumes;
  const GID = 4242;
  /** System call number. */
  const RENAMEAT2 = process.arch === 'arm64' ? '276' : '316';

  it('group ownership changes group and mode of all files, even with names that are not UTF-8, but not owners and link targets', async () => {
    const volume = join(directory, 'owned');
    await mkdir(join(volume, 'd'), { recursive: true });
    const odd = Buffer.concat([Buffer.from(`${volume}/d/`), Buffer.from([0xff, 0xfe])]);
    await writeFile(odd, '', { mode: 0o600 });
    await writeFile(join(directory, 'outside'), '', { mode: 0o600 });
    await symlink('../outside', join(volume, 'link'));
    await ownByGroup(volume, GID);
    const of = async (path: string | Buffer) => {
      const { uid, gid, mode } = await stat(path);
      return [uid, gid, mode & 0o7777];
    };
    assert.deepEqual(await of(odd), [0, GID, 0o660]);
    assert.deepEqual(await of(join(volume, 'd')), [0, GID, 0o2775]);
    assert.deepEqual(await of(join(directory, 'outside')), [0, 0, 0o600]);
    await writeFile(join(volume, 'd/late'), '', { mode: 0o600 });
    await chown(join(volume, 'd/late'), 0, 0);
    await ownByGroup(volume, GID, 'OnRootMismatch');
    assert.deepEqual(await of(join(volume, 'd/late')), [0, 0, 0o600]);
  });

  it('setting group ownership never changes a file outside of the volume while a process replaces entries by links', {
    timeout: 60_000,
  }, async () => {
    const volume = join(directory, 'raced');
    const outside = join(directory, 'host');
    await mkdir(join(volume, 'a'), { recursive: true });
    await mkdir(outside);
    for (let at = 0; at < 20; at++) await writeFile(join(outside, `f${at}`), '', { mode: 0o600 });
    for (let at = 0; at < 20; at++) await writeFile(join(volume, `a/f${at}`), '');
    // Exchanges a directory, and each file, with a link to the host's, as fast as possible.
    const racer = `
      my ($volume, $outside, $call) = @ARGV;
      chdir $volume;
      symlink $outside, 'b';
      for my $at (0 .. 19) { symlink "$outside/f$at", "l$at"; open my $file, '>', "g$at"; }
      sub swap { my ($x, $y) = @_; syscall($call + 0, -100, $x, -100, $y, 2) == 0 or die "swap: $!" }
      while (1) {
        swap('a', 'b');
        swap("l$_", "g$_") for 0 .. 19;
      }
    `;
    const swapping = spawn('perl', ['-e', racer, volume, outside, RENAMEAT2], { stdio: 'ignore' });
    try {
      const until = Date.now() + 4_000;
      while (Date.now() < until) {
        await ownByGroup(volume, GID);
        for (const path of [outside, ...(await readdir(outside)).map((name) => join(outside, name))]) {
          const { gid, mode } = await stat(path);
          assert.equal(gid, 0, path);
          assert.equal(mode & 0o066, path === outside ? 0o044 : 0, path);
        }
      }
      assert.equal(swapping.exitCode, null, 'the racing process runs');
    } finally {
      swapping.kill('SIGKILL');
    }
  });
});
