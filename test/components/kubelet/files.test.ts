import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parseLogLine, tailOffset } from '../../../src/components/kubelet/server/log-lines.ts';
import { type Payload, writeAtomically } from '../../../src/components/kubelet/volumes/atomic-writer.ts';
import { bindSubPath } from '../../../src/components/kubelet/volumes/sub-path.ts';
import { createMounter } from '../../../src/io/host/index.ts';

let directory = '';
const mounts = createMounter();
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
    await writeFile(join(volume, 'file'), 'content');
    await bindSubPath(volume, 'x/y', join(directory, 'target/dir'), mounts);
    await writeFile(join(directory, 'target/dir/z'), '');
    assert.deepEqual(await readdir(join(volume, 'x/y')), ['z']);
    await bindSubPath(volume, 'file', join(directory, 'target/file'), mounts);
    assert.equal(await readFile(join(directory, 'target/file'), 'utf8'), 'content');
    // Again, as after a restart of the kubelet: no second mount on top.
    await bindSubPath(volume, 'file', join(directory, 'target/file'), mounts);
    const mountinfo = await readFile('/proc/self/mountinfo', 'utf8');
    assert.equal(mountinfo.split(`${directory}/target/file`).length, 2);
  });

  it('follow the links that a projected volume is made of', async () => {
    const volume = join(directory, 'projected');
    await mkdir(volume);
    const target = join(directory, 'target/key');
    const bound = async (): Promise<string> => {
      await bindSubPath(volume, 'd/key', target, mounts);
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
      await assert.rejects(bindSubPath(volume, path, join(directory, 'evil-target'), mounts), path);
    }
    const mountinfo = await readFile('/proc/self/mountinfo', 'utf8');
    assert.ok(!mountinfo.includes('evil-target'));
  });
});

describe('tmpfs for secrets', () => {
  it('is mounted once and goes with everything below it', async () => {
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
  it('says what could not be mounted', async () => {
    await assert.rejects(mounts.tmpfs(join(directory, 'absent'), { mode: 0o755 }), {
      code: 'mount',
      message: /absent/,
    });
  });
});

describe('log lines', () => {
  it('are read as the format says', () => {
    const parse = (text: string) => {
      const line = parseLogLine(Buffer.from(text));
      return line === undefined ? undefined : `${line.stream}${line.partial ? '+' : ''}:${line.text}`;
    };
    assert.equal(parse('2026-01-01T00:00:00.1Z stdout F hello world'), 'stdout:hello world');
    assert.equal(parse('2026-01-01T00:00:00.1Z stderr P part'), 'stderr+:part');
    assert.equal(parse('2026-01-01T00:00:00.1Z stdout F '), 'stdout:');
    assert.equal(parse('2026-01-01T00:00:00.1Z stdout F'), 'stdout:');
    for (const broken of ['', 'x', 'time stdin F x', 'time stdout X x', 'half']) assert.equal(parse(broken), undefined);
  });

  it('are found from the end as by counting from the start', async () => {
    const path = join(directory, 'log');
    for (const [count, width] of [
      [0, 1],
      [1, 10],
      [5, 70_000],
      [3000, 60],
    ] as const) {
      const lines = Array.from({ length: count }, (_, index) => `${index}${'x'.repeat(width)}`);
      const text = lines.map((line) => `${line}\n`).join('');
      await writeFile(path, text);
      for (const wanted of [0, 1, 2, count - 1, count, count + 1].filter((each) => each >= 0)) {
        const oracle = lines
          .slice(Math.max(0, count - wanted))
          .map((line) => `${line}\n`)
          .join('');
        const offset = await tailOffset(path, wanted);
        assert.equal(text.slice(offset), wanted === 0 ? '' : oracle, `${wanted} of ${count}`);
      }
    }
  });
});
