/** Archives whose content contradicts their digests, sizes or the free space. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { silentLog } from '../../../src/base/log.ts';
import { trees } from '../../../src/runtime/directory-removal/index.ts';
import { createImageStore, type ImageStore } from '../../../src/runtime/images/index.ts';
import { sha256, tarBytes } from '../../conformance/busybox-image.ts';
import { END_OF_ARCHIVE, file, ociArchive, ociImage, tarBlocks } from './archives.ts';

const skip = process.getuid?.() === 0 ? false : 'needs root';
let scratch = '';
before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'archive-faults-'));
});
after(() => rm(scratch, { recursive: true, force: true }));

const storeAt = (root: string): ImageStore => createImageStore({ root, trees, log: silentLog });
async function written(name: string, bytes: Buffer): Promise<string> {
  const path = join(scratch, name);
  await writeFile(path, bytes);
  return path;
}

test('rejects an OCI archive whose manifest or configuration does not have its digest', { skip }, async () => {
  const layer = await tarBytes([file('a', 'x')]);
  const image = ociImage([{ bytes: layer, diffId: sha256(layer) }], undefined, { Env: ['MODE=safe'] });
  const whole = await ociArchive(image, 'lab/app:1');
  const changed = (from: string, to: string): Buffer => {
    const at = whole.indexOf(from);
    assert.ok(at >= 0, from);
    const copy = Buffer.from(whole);
    copy.write(to, at);
    return copy;
  };
  const store = storeAt(join(scratch, 'digests'));
  const cases = {
    configuration: ['MODE=safe', 'MODE=evil'],
    manifest: ['"schemaVersion":2', '"schemaVersion":3'],
  } as const;
  await store.importArchive(await written('whole.tar', whole));
  for (const [name, [from, to]] of Object.entries(cases)) {
    const path = await written(`${name}.tar`, changed(from, to));
    await assert.rejects(store.importArchive(path), { code: 'image-pull', message: /has digest sha256:/ }, name);
  }
});

test('reads the size of an archive member from its extended header', { skip }, async () => {
  const layer = await tarBytes([file('a', 'x')]);
  const config = Buffer.from(JSON.stringify({ os: 'linux', rootfs: { diff_ids: [sha256(layer)] } }));
  const manifest = JSON.stringify([{ Config: 'c.json', RepoTags: ['lab/pax:1'], Layers: ['l.tar'] }]);
  // Sizes over 8 GiB do not fit in the header. Writers then set it to 0 and add a record.
  const record = ` size=${layer.length}\n`;
  const pax = Buffer.from(`${record.length + 2}${record}`);
  const member = tarBlocks('l.tar', '0', layer);
  member.write('00000000000\0', 124);
  member.fill(' ', 148, 156);
  const sum = member.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  member.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  const archive = Buffer.concat([
    tarBlocks('pax', 'x', pax),
    member,
    tarBlocks('c.json', '0', config),
    tarBlocks('manifest.json', '0', Buffer.from(manifest)),
    END_OF_ARCHIVE,
  ]);
  const [imported] = await storeAt(join(scratch, 'pax')).importArchive(await written('pax.tar', archive));
  assert.deepEqual(imported?.names, ['docker.io/lab/pax:1']);
});

test('ends the decompression of an archive before it fills the file system', { skip, timeout: 60_000 }, async (t) => {
  const root = join(scratch, 'small');
  await mkdir(root);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=420m', 'small', root]);
  t.after(() => execFileSync('umount', [root]));
  const zeros = Buffer.alloc(500 * 1024 ** 2);
  for (const [name, bytes] of [
    ['bomb.tar.gz', gzipSync(zeros, { level: 1 })],
    ['bomb.tar.zst', zstdCompressSync(zeros)],
  ] as const) {
    const path = await written(name, bytes);
    let least = Number.POSITIVE_INFINITY;
    const timer = setInterval(() => {
      void statfs(root).then(({ bavail, bsize }) => {
        least = Math.min(least, bavail * bsize);
      });
    }, 5);
    await assert.rejects(storeAt(root).importArchive(path), { code: 'image-pull', message: /no space left on device/ });
    clearInterval(timer);
    assert.ok(least > 150 * 1024 ** 2, `${name}: ${least} bytes were left`);
    assert.deepEqual(await readdir(join(root, 'tmp')), []);
  }
});

test('leaves no temporary files in the store when a write fails', { skip }, async (t) => {
  const root = join(scratch, 'full');
  await mkdir(root);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'full', root]);
  t.after(() => execFileSync('umount', [root]));
  const store = storeAt(root);
  const layer = await tarBytes([file('a', 'x')]);
  const image = ociImage([{ bytes: layer, diffId: sha256(layer) }]);
  await store.importArchive(await written('fits.tar', await ociArchive(image, 'lab/fits:1')));
  await writeFile(join(root, 'filler'), Buffer.alloc(8 * 1024 ** 2)).catch(() => undefined);
  await assert.rejects(store.pin('lab/fits:1', true), /ENOSPC/);
  await assert.rejects(store.hold('lab/fits:1', 'container'), /ENOSPC/);
  assert.deepEqual(await readdir(join(root, 'tmp')), []);
});
