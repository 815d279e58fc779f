import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access, link, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { trees } from '../../../src/runtime/directory-removal/index.ts';
import { makeDeepTree } from './deep-tree.ts';

const run = promisify(execFile);
const MEASURE = { unit: 'bytes', timeoutMs: 30_000 } as const;

let scratch: string;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'trees-'));
});
afterEach(() => run('rm', ['-rf', scratch]));

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

const openDescriptors = async (): Promise<number> => (await readdir('/proc/self/fd')).length;

describe('removal of directory trees', () => {
  it('removes 5,000 nested directories with names of 255 bytes with few file descriptors', async () => {
    const tree = join(scratch, 'deep');
    await mkdir(tree);
    await makeDeepTree(tree, 5_000);
    await assert.rejects(rm(tree, { recursive: true }), 'Node itself cannot remove it, or this test shows nothing');
    let most = 0;
    const before = await openDescriptors();
    const watching = setInterval(async () => {
      most = Math.max(most, await openDescriptors());
    }, 5);
    await trees.remove(tree);
    clearInterval(watching);
    assert.equal(await exists(tree), false);
    assert.ok(most - before <= 8, `${most - before} descriptors more than before`);
  });

  it('removes directories with many entries, entries whose names are not UTF-8, and special files', async () => {
    const tree = join(scratch, 'wide');
    for (let i = 0; i < 40; i += 1) {
      await mkdir(join(tree, `d${i}`, 'in', 'side'), { recursive: true });
      for (let j = 0; j < 10; j += 1) await writeFile(join(tree, `d${i}`, 'in', `f${j}`), '');
    }
    for (let i = 0; i < 300; i += 1) await writeFile(join(tree, `f${i}`), '');
    await mkdir(Buffer.concat([Buffer.from(`${tree}/`), Buffer.from([0xff, 0xfe, 0x80])]));
    await writeFile(
      Buffer.concat([Buffer.from(`${tree}/`), Buffer.from([0xff, 0xfe, 0x80]), Buffer.from('/\xe9', 'latin1')]),
      '',
    );
    await run('mkfifo', [join(tree, 'fifo')]);
    await trees.remove(tree);
    assert.equal(await exists(tree), false);
    await writeFile(join(scratch, 'file'), '');
    await trees.remove(join(scratch, 'file'));
    await trees.remove(join(scratch, 'nothing'));
    assert.deepEqual(await readdir(scratch), []);
  });

  it('removing a directory tree follows no symbolic link, neither at the top nor below', async () => {
    const outside = join(scratch, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'kept'), '');
    const tree = join(scratch, 'tree');
    await mkdir(join(tree, 'a', 'b'), { recursive: true });
    await symlink(outside, join(tree, 'a', 'b', 'out'));
    await symlink(outside, join(tree, 'out'));
    await trees.remove(tree);
    await symlink(outside, join(scratch, 'link'));
    await trees.remove(join(scratch, 'link'));
    assert.deepEqual(await readdir(scratch), ['outside']);
    assert.deepEqual(await readdir(outside), ['kept']);
  });

  it('removing a directory tree never deletes files of a file system mounted below it', async () => {
    const outside = join(scratch, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'kept'), '');
    for (const at of ['mounted', 'a/b/mounted']) {
      const tree = join(scratch, 'tree');
      await mkdir(join(tree, at), { recursive: true });
      await writeFile(join(tree, 'file'), '');
      await run('mount', ['--bind', outside, join(tree, at)]);
      try {
        await assert.rejects(trees.remove(tree), /EBUSY|EXDEV/);
      } finally {
        // The parent directory of the mount may have been moved.
        const mounts = (await readFile('/proc/self/mountinfo', 'utf8'))
          .split('\n')
          .map((line) => line.split(' ')[4] ?? '');
        for (const point of mounts.filter((each) => each.startsWith(scratch))) await run('umount', ['-l', point]);
      }
      assert.deepEqual(await readdir(outside), ['kept']);
      await trees.remove(tree);
      assert.equal(await exists(tree), false);
    }
  });

  it('supports concurrent removals of the same directory tree', async () => {
    const tree = join(scratch, 'both');
    for (let i = 0; i < 50; i += 1) await mkdir(join(tree, `d${i}`, 'x', 'y', 'z'), { recursive: true });
    await Promise.all([trees.remove(tree), trees.remove(tree)]);
    assert.equal(await exists(tree), false);
  });
});

describe('disk usage of directory trees', () => {
  it('disk usage counts hard links once, follows no symbolic link, and ignores missing paths', async () => {
    const outside = join(scratch, 'outside');
    const volume = join(scratch, 'volume');
    await mkdir(join(volume, 'in'), { recursive: true });
    await mkdir(outside);
    await writeFile(join(outside, 'big'), Buffer.alloc(4 << 20, 1));
    await symlink(outside, join(volume, 'out'));
    await writeFile(join(volume, 'in', 'file'), Buffer.alloc(1 << 20, 1));
    await link(join(volume, 'in', 'file'), join(volume, 'again'));
    const deep = join(scratch, 'deep');
    await mkdir(deep);
    await makeDeepTree(deep, 100);
    const used = await trees.usage([volume, deep, join(scratch, 'nothing')], MEASURE);
    assert.deepEqual([...used.keys()].sort(), [deep, volume]);
    for (const path of [volume, deep]) {
      const bytes = used.get(path) ?? 0;
      assert.ok(bytes >= 1 << 20 && bytes < 2 << 20, `${path}: ${bytes}`);
    }
    const inodes = await trees.usage([volume], { unit: 'inodes', timeoutMs: 30_000 });
    assert.equal(inodes.get(volume), 4, 'two directories, one file with two names, one link');
  });

  it('measuring disk usage does not block the event loop and stops at its time limit', async () => {
    const tree = join(scratch, 'many');
    await mkdir(tree);
    for (let i = 0; i < 5_000; i += 1) await writeFile(join(tree, `f${i}`), '');
    await assert.rejects(trees.usage([tree], { unit: 'bytes', timeoutMs: 1 }), { code: 'timeout' });
  });
});
