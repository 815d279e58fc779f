import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { zstdCompressSync } from 'node:zlib';
import { HELPER_PREFIX } from '../../../src/host/process/helper-manifest.ts';
import { openHelpers } from '../../../src/host/process/helper-programs.ts';

const program = Buffer.from(`\x7fELF ${HELPER_PREFIX}/lib/ld.so\0${HELPER_PREFIX}/lib\0end`, 'latin1');
const library = Buffer.from('a library');
const bundled = {
  manifest: {
    hash: 'abc',
    files: [
      { path: 'bin/tool', size: program.length },
      { path: 'lib/libtool.so.1', size: library.length },
    ],
  },
  contents: () => new Uint8Array(zstdCompressSync(Buffer.concat([program, library]))),
};
let base = '';
before(async () => {
  base = await mkdtemp(join(tmpdir(), 'helpers-'));
});
after(() => rm(base, { recursive: true }));

test('unpacks executable programs into their directory without changing their size', async () => {
  const bin = await openHelpers(bundled, base);
  assert.equal(bin, join(base, 'helpers-abc/bin'));
  const tool = join(base, 'helpers-abc/bin/tool');
  const content = await readFile(tool, 'latin1');
  assert.equal(content.length, program.length);
  assert.ok(content.startsWith(`\x7fELF ${base}/helpers-abc/lib/ld.so\0`));
  assert.ok(content.includes(`\0${base}/helpers-abc/lib\0`));
  assert.ok(content.endsWith('\0end'));
  assert.equal((await stat(tool)).mode & 0o777, 0o700);
  assert.equal((await stat(join(base, 'helpers-abc/lib/libtool.so.1'))).mode & 0o777, 0o600);
  assert.deepEqual(await readdir(base), ['helpers-abc']);
});

test('unpacks a damaged helper program again, and keeps an intact helper program', async () => {
  const tool = join(base, 'helpers-abc/bin/tool');
  const { ino } = await stat(tool);
  await openHelpers(bundled, base);
  assert.equal((await stat(tool)).ino, ino);
  await writeFile(tool, 'damaged');
  await openHelpers(bundled, base);
  assert.notEqual(await readFile(tool, 'utf8'), 'damaged');
});

test('rejects a cache directory whose path is too long, with the fix', async () => {
  const long = join(base, 'x'.repeat(200));
  await assert.rejects(openHelpers(bundled, long), { code: 'assets', message: /set HYPEREDGE_CACHE to a shorter one/ });
});

test('uses the host’s own programs if no programs are packaged', async () => {
  assert.equal(await openHelpers(undefined, base), undefined);
});
