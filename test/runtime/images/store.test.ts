import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFile, lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { silentLog } from '../../../src/base/log.ts';
import { trees } from '../../../src/runtime/directory-removal/index.ts';
import { createImageStore, type ImageStore } from '../../../src/runtime/images/index.ts';
import { parseReference } from '../../../src/runtime/images/reference.ts';
import { dockerArchive, sha256, type TarEntry, tarBytes } from '../../conformance/busybox-image.ts';
import { directory, file, link, ociArchive, ociImage } from './archives.ts';

const run = promisify(execFile);
const root = process.getuid?.() === 0 ? false : 'needs root';

describe('image names', () => {
  const D = `sha256:${'a'.repeat(64)}`;
  const good: Readonly<Record<string, string>> = {
    busybox: 'docker.io/library/busybox:latest',
    'busybox:1.36': 'docker.io/library/busybox:1.36',
    'bitnami/redis': 'docker.io/bitnami/redis:latest',
    'docker.io/busybox': 'docker.io/library/busybox:latest',
    'index.docker.io/library/busybox': 'docker.io/library/busybox:latest',
    'quay.io/a/b/c:v1': 'quay.io/a/b/c:v1',
    'localhost/x': 'localhost/x:latest',
    'localhost:5000/x': 'localhost:5000/x:latest',
    'lab:5000/x:y': 'lab:5000/x:y',
    '[::1]:5000/x': '[::1]:5000/x:latest',
    [`busybox@${D}`]: `docker.io/library/busybox@${D}`,
    [`busybox:1.36@${D}`]: `docker.io/library/busybox@${D}`,
  };
  for (const [given, name] of Object.entries(good))
    it(`expands the image name ${given.slice(0, 60)}`, () => assert.equal(parseReference(given).name, name));
  const bad = [
    '',
    ':',
    'Busybox',
    'a//b',
    '../x',
    'a/../b',
    'x:',
    'x:.a',
    `x@sha256:${'a'.repeat(63)}`,
    'x@md5:abc',
    '-x',
    'x y',
    'x\0y',
    'a'.repeat(300),
    'reg:99999999/x',
    'x@',
    '__proto__/y:\n',
  ];
  for (const given of bad) {
    it(`rejects the image name ${JSON.stringify(given.slice(0, 40))}`, () =>
      assert.throws(() => parseReference(given), { code: 'image-invalid-name' }));
  }
});

describe('image store', { skip: root, timeout: 60_000 }, () => {
  let scratch = '';
  let store: ImageStore;
  let storeRoot = '';
  let counter = 0;

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'image-store-'));
  });
  after(async () => {
    await rm(scratch, { recursive: true, force: true });
  });
  beforeEach(() => {
    storeRoot = join(scratch, `store${++counter}`);
    store = createImageStore({ root: storeRoot, trees, log: silentLog });
  });

  async function archive(bytes: Buffer): Promise<string> {
    const path = join(scratch, `archive-${randomBytes(4).toString('hex')}.tar`);
    await writeFile(path, bytes);
    return path;
  }

  async function importLayers(tag: string, ...layers: (readonly TarEntry[])[]): Promise<string> {
    const tars = await Promise.all(layers.map(tarBytes));
    const [imported] = await store.importArchive(await archive(await dockerArchive({ tags: [tag], layers: tars })));
    return imported?.id ?? '';
  }

  /** The image in the kernel's overlay view: kind and content by path. */
  async function merged(id: string): Promise<ReadonlyMap<string, string>> {
    const holder = `view-${randomBytes(4).toString('hex')}`;
    const held = await store.hold(id, holder);
    const target = join(scratch, holder);
    await mkdir(target);
    const single = held.layers.length === 1;
    if (single) await run('mount', ['--bind', join(held.layerRoot, held.layers[0] ?? ''), target]);
    else
      await run('mount', ['-t', 'overlay', '-o', `ro,lowerdir=${held.layers.join(':')}`, 'overlay', target], {
        cwd: held.layerRoot,
      });
    const seen = new Map<string, string>();
    try {
      const walk = async (path: string): Promise<void> => {
        for (const name of (await readdir(join(target, path))).toSorted()) {
          const relative = path === '' ? name : `${path}/${name}`;
          const stats = await lstat(join(target, relative));
          if (stats.isDirectory()) {
            seen.set(relative, 'dir');
            await walk(relative);
          } else if (stats.isSymbolicLink()) seen.set(relative, `-> ${await readlink(join(target, relative))}`);
          else seen.set(relative, stats.isFile() ? await readFile(join(target, relative), 'utf8') : 'special');
        }
      };
      await walk('');
    } finally {
      await run('umount', [target]);
      await store.release(holder);
    }
    return seen;
  }

  it('imports docker archives with plain and gzip layers, and stores equal layers once', async () => {
    const layer = await tarBytes([
      directory('bin/'),
      file('bin/tool', 'content', { mode: 0o4755, uid: 12, gid: 34, mtime: new Date(1_000_000_000_000) }),
    ]);
    const bytes = await dockerArchive({
      tags: ['lab.local/one:1', 'one:also'],
      layers: [layer],
      config: { User: '1000:5', Entrypoint: ['/bin/tool'] },
    });
    const [first] = await store.importArchive(await archive(gzipSync(bytes)));
    assert.deepEqual(first?.names, ['lab.local/one:1', 'docker.io/library/one:also']);
    const status = await store.status('one:also');
    assert.deepEqual(
      [status?.id, status?.uid, status?.sizeBytes, status?.repoTags],
      [first?.id, 1000, 7, ['docker.io/library/one:also', 'lab.local/one:1']],
    );
    assert.equal((await store.status(first?.id ?? ''))?.id, first?.id);
    const held = await store.hold('one:also', 'c1');
    assert.deepEqual(held.config.entrypoint, ['/bin/tool']);
    const tool = await stat(join(held.layerRoot, held.layers[0] ?? '', 'bin/tool'));
    assert.deepEqual([tool.mode & 0o7777, tool.uid, tool.gid, tool.mtimeMs], [0o4755, 12, 34, 1_000_000_000_000]);
    const other = await dockerArchive({ tags: ['other'], layers: [layer], config: { Cmd: ['x'] } });
    const [second] = await store.importArchive(await archive(other), 'renamed:2');
    assert.deepEqual(second?.names, ['docker.io/library/renamed:2']);
    assert.notEqual(second?.id, first?.id);
    assert.equal((await readdir(join(storeRoot, 'layers'))).length, 1);
  });

  it('imports OCI archives with gzip and zstd layers', async () => {
    const one = await tarBytes([file('a', 'from gzip')]);
    const two = await tarBytes([file('b', 'from zstd')]);
    const image = ociImage([
      { bytes: gzipSync(one), diffId: sha256(one) },
      { bytes: zstdCompressSync(two), diffId: sha256(two) },
    ]);
    const path = await archive(await ociArchive(image, 'lab.local/oci:1'));
    const [imported] = await store.importArchive(path);
    assert.equal(imported?.id, sha256(image.config));
    assert.deepEqual(
      await merged(imported?.id ?? ''),
      new Map([
        ['a', 'from gzip'],
        ['b', 'from zstd'],
      ]),
    );
    await assert.rejects(store.importArchive(await archive(await ociArchive(image, undefined))), {
      code: 'image-invalid-name',
    });
    await store.importArchive(await archive(zstdCompressSync(await ociArchive(image, undefined))), 'named');
    assert.equal((await store.status('named'))?.id, imported?.id);
    const stolen = await archive(await ociArchive(image, 'hyperedge.local/host-root:1'));
    const reserved = { code: 'image-invalid-name', message: /reserved for the root of the host itself/ };
    await assert.rejects(store.importArchive(stolen), reserved);
    for (const name of ['hyperedge.local/host-root', 'HyperEdge.local/host-root:2']) {
      await assert.rejects(store.importArchive(path, name), reserved);
      await assert.rejects(store.pull(name, undefined), reserved);
    }
  });

  it('deletes files and whole directories as whiteouts of the layers specify', async () => {
    const id = await importLayers(
      'whiteouts',
      [
        directory('d/'),
        file('d/old', '1'),
        directory('d/sub/'),
        file('d/sub/x', '2'),
        file('gone', '3'),
        directory('keep/'),
        file('keep/k', '4'),
        directory('tree/'),
        file('tree/t', '5'),
      ],
      [file('.wh.gone', ''), file('keep/.wh.k', ''), file('keep/k2', 'new'), file('.wh.tree', '')],
      [
        directory('d/'),
        file('d/.wh..wh..opq', ''),
        file('d/new', '6'),
        directory('d/sub/'),
        file('d/sub/y', '7'),
        directory('tree/'),
        file('tree/again', '8'),
      ],
    );
    assert.deepEqual(
      await merged(id),
      new Map([
        ['d', 'dir'],
        ['d/new', '6'],
        ['d/sub', 'dir'],
        ['d/sub/y', '7'],
        ['keep', 'dir'],
        ['keep/k2', 'new'],
        ['tree', 'dir'],
        ['tree/again', '8'],
      ]),
    );
  });

  it('unpacked images equal the result of a simple oracle for random stacks of layers', async () => {
    let seed = 20_261_120;
    const random = (bound: number): number => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
      return (seed >>> 8) % bound;
    };
    const NAMES = ['a', 'b', 'c'];
    for (let round = 0; round < 12; round++) {
      // The oracle: a flat map of paths; in each layer, deletions precede additions.
      const oracle = new Map<string, string>();
      const drop = (path: string): void => {
        for (const key of [...oracle.keys()]) if (key === path || key.startsWith(`${path}/`)) oracle.delete(key);
      };
      const layers: TarEntry[][] = [];
      for (let depth = 0; depth < 4; depth++) {
        const added = new Map<string, string>();
        const removed = new Set<string>();
        const opaque = new Set<string>();
        for (let step = 0; step < 6; step++) {
          const parent = random(3) === 0 ? '' : `${NAMES[random(3)]}`;
          const path =
            parent === ''
              ? `f${random(3)}`
              : random(2) === 0
                ? `${parent}/${NAMES[random(3)]}x`
                : `${parent}/sub/${NAMES[random(3)]}`;
          const action = random(4);
          if (action === 0 && !added.has(path)) removed.add(path);
          else if (action === 1 && parent !== '') opaque.add(parent);
          else if (!removed.has(path)) added.set(path, `${round}.${depth}.${step}`);
        }
        const directories = new Set<string>(opaque);
        for (const path of [...added.keys(), ...removed]) {
          const parts = path.split('/').slice(0, -1);
          for (const index of parts.keys()) directories.add(parts.slice(0, index + 1).join('/'));
        }
        for (const path of opaque) for (const key of [...oracle.keys()]) if (key.startsWith(`${path}/`)) drop(key);
        for (const path of removed) drop(path);
        for (const path of directories) oracle.set(path, 'dir');
        for (const [path, body] of added) oracle.set(path, body);
        layers.push([
          ...[...directories].toSorted().map((path) => directory(`${path}/`)),
          ...[...opaque].map((path) => file(`${path}/.wh..wh..opq`, '')),
          ...[...removed].map((path) => file(path.replace(/([^/]+)$/, '.wh.$1'), '')),
          ...[...added].map(([path, body]) => file(path, body)),
        ]);
      }
      const id = await importLayers(`random:${round}`, ...layers);
      assert.deepEqual([...(await merged(id))].toSorted(), [...oracle].toSorted(), `round ${round}`);
    }
  });

  describe('layers with paths outside of the layer', () => {
    const victim = (): string => join(scratch, 'victim');
    const attacks: Readonly<Record<string, () => readonly TarEntry[]>> = {
      'a name with ..': () => [file('../victim', 'x')],
      'a deep name with ..': () => [file('a/b/../../../../victim', 'x')],
      'a hard link to the host': () => [link('hard', '../../../../../../../etc/passwd', 'link')],
      'an absolute hard link': () => [link('hard', '/etc/passwd', 'link')],
      'a hard link through a symbolic link': () => [link('out', '/etc'), link('hard', 'out/passwd', 'link')],
      'a whiteout of ..': () => [file('.wh...', '')],
      'the root as a file': () => [file('./', 'x', { type: 'file' })],
    };
    for (const [name, entries] of Object.entries(attacks)) {
      it(`rejects a layer with ${name}, and leaves no files`, async () => {
        await writeFile(join(scratch, 'archive'), 'must stay');
        await assert.rejects(importLayers('evil', entries()), (error: Error & { code?: string }) => {
          assert.equal(error.code, 'image-pull', error.message);
          return true;
        });
        await assert.rejects(lstat(victim()));
        assert.equal(await readFile(join(scratch, 'archive'), 'utf8'), 'must stay');
        assert.deepEqual(await readdir(join(storeRoot, 'layers')), []);
        assert.deepEqual(
          (await readdir(join(storeRoot, 'tmp'))).filter((each) => each !== 'whiteout'),
          [],
        );
        assert.deepEqual(await store.list(), []);
      });
    }

    it('applies whiteouts inside a directory that the same layer replaces by a link to the host', async () => {
      const below = [
        directory('d/'),
        file('d/victim', 'x'),
        file('d/archive', 'x'),
        directory('o/'),
        file('o/victim', 'x'),
      ];
      const above = [
        directory('d/'),
        file('d/.wh.victim', ''),
        link('d', scratch),
        directory('o/'),
        file('o/.wh..wh..opq', ''),
        link('o', scratch),
      ];
      const id = await importLayers('replaced', below, above);
      await assert.rejects(lstat(victim()));
      assert.deepEqual(
        await merged(id),
        new Map([
          ['d', `-> ${scratch}`],
          ['o', `-> ${scratch}`],
        ]),
      );
    });

    it('unpacks a symbolic link to itself, and replaces a link that a later entry overwrites', async () => {
      const id = await importLayers('links', [
        link('loop', 'loop'),
        link('l', scratch),
        file('l', 'now a file'),
        link('dangling', '/no/such'),
      ]);
      assert.deepEqual(
        await merged(id),
        new Map([
          ['dangling', '-> /no/such'],
          ['l', 'now a file'],
          ['loop', '-> loop'],
        ]),
      );
    });
  });

  it('rejects damaged image archives', async () => {
    const layer = await tarBytes([file('a', 'x'.repeat(5000))]);
    const whole = await dockerArchive({ tags: ['t'], layers: [layer] });
    const cases: Readonly<Record<string, Buffer>> = {
      'no tar': Buffer.from('not an archive at all'.repeat(100)),
      'cut short': whole.subarray(0, 3000),
      'cut gzip': gzipSync(whole).subarray(0, 200),
      empty: Buffer.alloc(0),
      'another layer than the configuration says': await dockerArchive({
        tags: ['t'],
        layers: [layer],
        diffIds: [sha256('other')],
      }),
      'a missing layer': await tarBytes([
        file('manifest.json', JSON.stringify([{ Config: 'c', RepoTags: ['t'], Layers: ['nope'] }])),
        file('c', JSON.stringify({ rootfs: { diff_ids: [sha256('x')] } })),
      ]),
      'a configuration that is no JSON': await tarBytes([
        file('manifest.json', JSON.stringify([{ Config: 'c', RepoTags: ['t'], Layers: [] }])),
        file('c', '{'),
      ]),
      'neither form': await tarBytes([file('hello', 'x')]),
      'a damaged header': Buffer.from(whole).fill(0x41, 100, 110),
    };
    for (const [name, bytes] of Object.entries(cases)) {
      await assert.rejects(store.importArchive(await archive(bytes)), { code: 'image-pull' }, name);
    }
    await assert.rejects(store.importArchive(join(scratch, 'missing.tar')), { code: 'image-pull' });
    assert.deepEqual(await readdir(join(storeRoot, 'layers')), []);
  });

  it('removes images by name or ID, and keeps layers that containers or other images use', async () => {
    const shared = [file('base', 'shared')];
    const one = await importLayers('one:1', shared, [file('top', '1')]);
    await importLayers('two:1', shared, [file('top', '2')]);
    const layers = async (): Promise<number> => (await readdir(join(storeRoot, 'layers'))).length;
    assert.equal(await layers(), 3);
    await store.hold(one, 'container');
    await store.remove('one:1');
    assert.equal(await store.status('one:1'), undefined);
    assert.equal(await layers(), 3, 'a container still uses it');
    await store.release('container');
    assert.equal(await layers(), 2);
    await store.remove((await store.status('two:1'))?.id ?? '');
    assert.equal(await layers(), 0);
    await store.remove('two:1');
    await assert.rejects(store.hold('two:1', 'x'), { code: 'image-not-found' });
    assert.deepEqual(await readdir(join(storeRoot, 'layer-manifests')), []);
  });

  it('verification of the image store detects changed, missing and additional files of layers', async () => {
    const id = await importLayers(
      'v:1',
      [file('bin', 'good', { mode: 0o755 }), file('conf', 'good')],
      [file('more', 'x')],
    );
    assert.deepEqual(await store.verify(), []);
    const held = await store.hold(id, 'v');
    const bottom = join(held.layerRoot, held.layers.at(-1) ?? '');
    await writeFile(join(bottom, 'bin'), 'evil');
    await appendFile(join(bottom, 'conf'), '!');
    const faults = await store.verify('v:1');
    assert.equal(faults.length, 2);
    assert.match(faults.join('\n'), /bin has other content/);
    assert.match(faults.join('\n'), /conf has 5 bytes instead of 4/);
    await rm(join(held.layerRoot, held.layers[0] ?? ''), { recursive: true });
    assert.match((await store.verify()).join('\n'), /is missing/);
  });

  const STORE = new URL('../../../src/runtime/images/index.ts', import.meta.url).href;
  const TREES = new URL('../../../src/runtime/directory-removal/index.ts', import.meta.url).href;
  const child = (script: string): ReturnType<typeof spawn> =>
    spawn(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `import { createImageStore } from '${STORE}';
      import { trees } from '${TREES}';
      const log = { error() {}, warn() {}, info() {}, v() {}, enabled: () => false, named: () => log };
      const store = createImageStore({ root: '${storeRoot}', trees, log });
      ${script}`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );

  it('the image store lists images imported by other processes, and allows concurrent imports of one image', async () => {
    const path = await archive(
      await dockerArchive({
        tags: ['many:1'],
        layers: [await tarBytes([file('big', 'x'.repeat(300_000))]), await tarBytes([file('b', '1')])],
      }),
    );
    assert.equal(await store.status('many:1'), undefined);
    const children = [1, 2, 3].map(() => child(`await store.importArchive('${path}');`));
    const codes = await Promise.all(children.map((each) => new Promise((resolve) => each.on('close', resolve))));
    assert.deepEqual(codes, [0, 0, 0]);
    assert.equal((await store.status('many:1'))?.sizeBytes, 300_001);
    assert.deepEqual(await store.verify(), []);
    assert.deepEqual(
      (await readdir(join(storeRoot, 'tmp'))).filter((each) => each !== 'whiteout'),
      [],
    );
    assert.deepEqual(await readdir(join(storeRoot, 'intents')), []);
  });

  it('garbage collection keeps an image layer that another process is importing', async () => {
    const top = await tarBytes(Array.from({ length: 400 }, (_, index) => file(`f${index}`, 'y'.repeat(2_000))));
    const path = await archive(
      await dockerArchive({ tags: ['race:1'], layers: [await tarBytes([file('a', '1')]), top] }),
    );
    const importing = child(`await store.importArchive('${path}');`);
    const done = new Promise((resolve) => importing.on('close', resolve));
    let running = true;
    void done.then(() => {
      running = false;
    });
    while (running) await store.collectGarbage();
    assert.equal(await done, 0);
    assert.deepEqual(await store.verify(), []);
    assert.equal((await merged('race:1')).size, 401);
  });

  it('the image store is consistent after the importing process was killed at any moment', async () => {
    const layers = await Promise.all(
      [0, 1, 2].map((n) =>
        tarBytes(Array.from({ length: 60 }, (_, index) => file(`l${n}-${index}`, `${n}`.repeat(500)))),
      ),
    );
    const path = await archive(await dockerArchive({ tags: ['crash:1'], layers }));
    for (let round = 0; round < 8; round++) {
      const victim = child(`console.log('go'); await store.importArchive('${path}'); console.log('done')`);
      const closed = new Promise((resolve) => victim.on('close', resolve));
      await new Promise((resolve) => victim.stdout?.once('data', resolve));
      await new Promise((resolve) => setTimeout(resolve, round * 12));
      victim.kill('SIGKILL');
      await closed;
      const reopened = createImageStore({ root: storeRoot, trees, log: silentLog });
      const there = await reopened.status('crash:1');
      assert.deepEqual(await reopened.verify(), [], `round ${round}`);
      if (there === undefined) await reopened.collectGarbage();
      else await reopened.remove('crash:1');
      assert.deepEqual(await readdir(join(storeRoot, 'layers')), [], `round ${round}`);
      assert.deepEqual(
        (await readdir(join(storeRoot, 'tmp'))).filter((each) => each !== 'whiteout'),
        [],
        `round ${round}`,
      );
    }
  });
});
