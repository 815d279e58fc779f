/** Layers as created by image builders: names are resolved below the root, and parents are taken from lower layers. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { trees } from '../../../src/runtime/directory-removal/index.ts';
import { createImageStore, type ImageStore } from '../../../src/runtime/images/index.ts';
import { runCommand } from '../../../src/runtime/oci/command.ts';
import { withLowerDirectories } from '../../../src/runtime/oci/spec/overlay-lowers.ts';
import { dockerArchive, type TarEntry, tarBytes } from '../../conformance/busybox-image.ts';
import { directory, file, link } from './archives.ts';

describe('path resolution in image layers', { skip: process.getuid?.() === 0 ? false : 'needs root' }, () => {
  let scratch = '';
  let store: ImageStore;
  let rounds = 0;

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'image-layers-'));
  });
  after(() => rm(scratch, { recursive: true, force: true }));
  beforeEach(() => {
    rounds += 1;
    store = createImageStore({ root: join(scratch, `store${rounds}`), trees, log: silentLog });
  });

  async function imported(...layers: (readonly TarEntry[])[]): Promise<string> {
    const archive = join(scratch, `${randomBytes(4).toString('hex')}.tar`);
    const bytes = await dockerArchive({ tags: ['t'], layers: await Promise.all(layers.map(tarBytes)) });
    await writeFile(archive, bytes);
    return (await store.importArchive(archive))[0]?.id ?? '';
  }

  /** Runs `look` with the overlay view of the image. */
  async function mounted<T>(id: string, look: (root: string) => Promise<T>): Promise<T> {
    const target = join(scratch, `view-${randomBytes(4).toString('hex')}`);
    await mkdir(target);
    await mkdir(`${target}-empty`);
    const held = await store.hold(id, 'view');
    const layers = held.layers.length > 1 ? held.layers : [...held.layers, `${target}-empty`];
    await withLowerDirectories(held.layerRoot, layers, (cwd, lowerdir) =>
      runCommand('mount', ['-t', 'overlay', '-o', `ro,lowerdir=${lowerdir}`, 'overlay', target], { cwd }),
    );
    try {
      return await look(target);
    } finally {
      await runCommand('umount', [target]);
      await store.release('view');
    }
  }

  const text = (root: string, path: string): Promise<string> => readFile(join(root, path), 'utf8');
  const inode = async (root: string, path: string): Promise<number> => (await stat(join(root, path))).ino;

  it('resolves absolute names and hard link targets from the root of the layer', async () => {
    const id = await imported([
      directory('/kaniko/'),
      file('/kaniko/tool', 'k'),
      { header: { name: '/kaniko/again', linkname: '/kaniko/tool', type: 'link' } },
    ]);
    await mounted(id, async (root) => {
      assert.equal(await text(root, 'kaniko/again'), 'k');
      assert.equal(await inode(root, 'kaniko/again'), await inode(root, 'kaniko/tool'));
    });
  });

  it('unpacks entries below symbolic links of the same layer, whose targets always stay inside the layer', async () => {
    const outside = join(scratch, `outside${rounds}`);
    await mkdir(outside);
    const id = await imported([
      directory('usr/'),
      directory('usr/lib/', { mode: 0o711 }),
      link('lib', 'usr/lib'),
      file('lib/a.so', 'a'),
      link('host', outside),
      file('host/f', 'f'),
      link('up', '../../../../../../../../../../..'),
      directory('up/etc/'),
      file('up/etc/g', 'g'),
      file('usr/../h', 'h'),
      link('chain', 'lib'),
      file('chain/b.so', 'b'),
      link('dangling', 'made/later'),
      file('dangling/c', 'c'),
    ]);
    assert.deepEqual(await readdir(outside), []);
    await mounted(id, async (root) => {
      assert.equal(await text(root, 'usr/lib/a.so'), 'a');
      assert.equal(await text(root, 'usr/lib/b.so'), 'b');
      assert.equal((await stat(join(root, 'usr/lib'))).mode & 0o777, 0o711);
      assert.equal(await text(root, `${outside.slice(1)}/f`), 'f');
      assert.equal(await text(root, 'etc/g'), 'g');
      assert.equal(await text(root, 'h'), 'h');
      assert.equal(await text(root, 'made/later/c'), 'c');
      assert.equal((await lstat(join(root, 'lib'))).isSymbolicLink(), true);
    });
    assert.deepEqual(await store.verify(), []);
  });

  it('applies whiteouts below symbolic links of the same layer', async () => {
    const id = await imported(
      [directory('usr/'), directory('usr/lib/'), file('usr/lib/old', '1'), directory('o/'), file('o/old', '2')],
      [
        link('lib', 'usr/lib'),
        file('lib/.wh.old', ''),
        link('p', '/o'),
        file('p/.wh..wh..opq', ''),
        file('o/new', '3'),
      ],
    );
    await mounted(id, async (root) => {
      assert.deepEqual(await readdir(join(root, 'usr/lib')), []);
      assert.deepEqual(await readdir(join(root, 'o')), ['new']);
    });
  });

  it('replaces a symbolic link by a directory entry of the same name', async () => {
    const id = await imported([link('d', '/etc'), directory('d/', { mode: 0o700 }), file('d/f', 'x')]);
    await mounted(id, async (root) => {
      assert.equal((await lstat(join(root, 'd'))).isDirectory(), true);
      assert.equal(await text(root, 'd/f'), 'x');
    });
  });

  it('a hard link to a file of a lower layer is the same file under both names', async () => {
    const id = await imported(
      [
        directory('bin/', { mode: 0o750, uid: 7 }),
        file('bin/tool', 'tool', { mode: 0o4755, uid: 5, gid: 6, mtime: new Date(1_000_000_000_000) }),
        link('alias', '/bin'),
        link('bin/sym', 'tool'),
      ],
      [file('other', 'x')],
      [
        { header: { name: 'bin/copy', linkname: 'alias/tool', type: 'link' } },
        { header: { name: 'sym', linkname: '/bin/sym', type: 'link' } },
      ],
    );
    await mounted(id, async (root) => {
      assert.equal(await text(root, 'bin/copy'), 'tool');
      assert.equal(await inode(root, 'bin/copy'), await inode(root, 'bin/tool'));
      const { mode, uid, gid, mtimeMs } = await stat(join(root, 'bin/copy'));
      assert.deepEqual([mode & 0o7777, uid, gid, mtimeMs], [0o4755, 5, 6, 1_000_000_000_000]);
      const parent = await stat(join(root, 'bin'));
      assert.deepEqual([parent.mode & 0o7777, parent.uid], [0o750, 7]);
      assert.equal((await lstat(join(root, 'sym'))).isSymbolicLink(), true);
    });
    assert.deepEqual(await store.verify(), []);
  });

  it('rejects hard links to missing files and to files that the same layer deletes', async () => {
    const hard = (linkname: string): TarEntry => ({ header: { name: 'hard', linkname, type: 'link' } });
    const cases: (readonly (readonly TarEntry[])[])[] = [
      [[hard('/etc/passwd')]],
      [[hard('../../../../../etc/passwd')]],
      [[link('out', '/etc'), hard('out/passwd')]],
      [[file('a', '1')], [file('.wh.a', ''), hard('a')]],
      [
        [directory('d/'), file('d/a', '1')],
        [file('d/.wh..wh..opq', ''), hard('d/a')],
      ],
      [[file('a', '1')], [file('.wh.a', '')], [hard('a')]],
      [[directory('d/')], [hard('d')]],
      [[link('loop', 'loop'), hard('loop/x')]],
    ];
    for (const layers of cases)
      await assert.rejects(imported(...layers), { code: 'image-pull', message: /hard|links|leaves/ });
    assert.deepEqual(await store.list(), []);
  });

  it('parent directories without an entry keep owner, mode and time of the lower layer', async () => {
    const time = new Date(1_100_000_000_000);
    const id = await imported(
      [
        directory('srv/', { mode: 0o1777, uid: 33, gid: 34, mtime: time }),
        directory('srv/x/', { mode: 0o700, uid: 9 }),
      ],
      [file('srv/x/y/f', 'f'), file('srv/.wh.gone', '')],
      [file('srv/g', 'g')],
    );
    await mounted(id, async (root) => {
      const srv = await stat(join(root, 'srv'));
      assert.deepEqual([srv.mode & 0o7777, srv.uid, srv.gid, srv.mtimeMs], [0o1777, 33, 34, time.getTime()]);
      const x = await stat(join(root, 'srv/x'));
      assert.deepEqual([x.mode & 0o7777, x.uid], [0o700, 9]);
      const y = await stat(join(root, 'srv/x/y'));
      assert.deepEqual([y.mode & 0o7777, y.uid], [0o755, 0]);
    });
  });

  it('a whiteout beside a directory of the same name hides the lower directory, in either order', async () => {
    const lower = [directory('a/', { mode: 0o700, uid: 3 }), file('a/old', '1'), directory('a/s/'), file('a/s/t', '2')];
    const orders: (readonly TarEntry[])[] = [
      [file('.wh.a', ''), directory('a/'), file('a/new', '3')],
      [directory('a/'), file('a/new', '3'), file('.wh.a', '')],
      [file('.wh.a', ''), file('a/new', '3')],
    ];
    for (const upper of orders) {
      const id = await imported(lower, upper);
      await mounted(id, async (root) => {
        assert.deepEqual(await readdir(join(root, 'a')), ['new']);
        const { mode, uid } = await stat(join(root, 'a'));
        assert.deepEqual([mode & 0o777, uid], [0o755, 0]);
      });
    }
  });

  it('mounts an image with 127 layers', async () => {
    const ids = Array.from({ length: 127 }, (_, index) => index);
    const id = await imported(...ids.map((index) => [file(`f${index}`, `${index}`)]));
    await mounted(id, async (root) => {
      assert.equal((await readdir(root)).length, ids.length);
      assert.equal(await text(root, 'f126'), '126');
    });
  });

  it('keeps the modification time of a directory in which the layer deletes files', async () => {
    const time = new Date(1_200_000_000_000);
    const id = await imported(
      [directory('d/'), file('d/old', '1')],
      [directory('d/', { mtime: time }), file('d/.wh.old', '')],
    );
    await mounted(id, async (root) => assert.equal((await stat(join(root, 'd'))).mtimeMs, time.getTime()));
  });
});
