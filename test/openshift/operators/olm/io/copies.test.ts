import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { CatalogCopies } from '../../../../../src/openshift/operators/olm/io/index.ts';

async function host(t: TestContext, files: Readonly<Record<string, string>> = {}) {
  const root = await mkdtemp(join(tmpdir(), 'he-copies-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(root, name, '..'), { recursive: true });
    await writeFile(join(root, name), text);
  }
  return { root, copies: new CatalogCopies(root) };
}

const sha256 = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`;
async function* pieces(text: string, length = 7): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < text.length; at += length) yield Buffer.from(text.slice(at, at + length));
}

test('copies a catalog from one master to another and deletes the replaced copy', async (t) => {
  const big = JSON.stringify({ text: 'x'.repeat(200_000) });
  const from = await host(t, { 'lab/catalog.json': big, 'lab/more/b.yaml': 'a: ü', 'lab/more/empty.json': '' });
  const to = await host(t, { 'lab/catalog.json': '{}', 'lab/old.json': '{}' });
  const { lab: digest = '' } = await from.copies.digests();
  const { lab: before = '' } = await to.copies.digests();
  const served = await from.copies.open(digest.slice('sha256:'.length));
  assert.ok(served);
  const bytes: Uint8Array[] = [];
  for await (const chunk of served.content) bytes.push(chunk);
  assert.equal(Buffer.concat(bytes).length, served.size);
  await to.copies.replace('lab', before, digest, pieces(Buffer.concat(bytes).toString('utf8'), 1013));
  assert.equal((await to.copies.digests())['lab'], digest);
  assert.deepEqual((await readdir(to.root)).sort(), ['lab']);
  assert.deepEqual((await readdir(join(to.root, 'lab'))).sort(), ['catalog.json', 'more']);
  assert.equal(await readFile(join(to.root, 'lab/more/b.yaml'), 'utf8'), 'a: ü');
  assert.equal(await from.copies.open('0'.repeat(64)), undefined);
});

test('rejects a fetched catalog copy with hostile or damaged content, and keeps the existing copy', async (t) => {
  const { root, copies } = await host(t, { 'lab/catalog.json': '{}' });
  const { lab: before = '' } = await copies.digests();
  const whole = 'a.json\x003\x00abc';
  for (const [text, expected] of [
    ['../a.json\x001\x00a', /not a file name of a catalog/],
    ['/etc/a.json\x001\x00a', /not a file name/],
    ['x/../a.json\x001\x00a', /not a file name/],
    ['.versions.json\x001\x00a', /not a file name/],
    ['a/b/c/d/e/f/g/h.json\x001\x00a', /not a file name/],
    ['a.sh\x001\x00a', /not a file name/],
    [`${'a'.repeat(5000)}.json\x001\x00a`, /name is too long|not a file name/],
    ['a.json\x00-1\x00a', /the size is wrong/],
    ['a.json\x009999999999\x00a', /the size is wrong/],
    ['a.json\x003\x00ab', /ends too early/],
    ['a.json\x003', /ends too early/],
    ['', /ends too early/],
    ['a.json\x001\x00aa.json\x001\x00a', /EEXIST/],
  ] as const)
    await assert.rejects(copies.replace('lab', before, sha256(text), pieces(text)), expected, JSON.stringify(text));
  await assert.rejects(
    copies.replace('lab', before, sha256('other'), pieces(whole)),
    /does not have its announced SHA-256/,
  );
  await assert.rejects(copies.replace('../lab', before, sha256(whole), pieces(whole)), /not a catalog name/);
  assert.equal((await copies.digests())['lab'], before);
  assert.deepEqual(await readdir(root), ['lab']);
});

test('does not replace a catalog copy that was edited during the transfer, or a directory without a catalog', async (t) => {
  const { root, copies } = await host(t, { 'lab/catalog.json': '{}', 'other/README.txt': 'mine' });
  const { lab: before = '' } = await copies.digests();
  const text = 'a.json\x003\x00abc';
  async function* edited(): AsyncGenerator<Uint8Array> {
    await writeFile(join(root, 'lab/catalog.json'), '{"edited": true}');
    yield* pieces(text);
  }
  await assert.rejects(copies.replace('lab', before, sha256(text), edited()), { code: 'changed' });
  assert.equal(await readFile(join(root, 'lab/catalog.json'), 'utf8'), '{"edited": true}');
  await assert.rejects(copies.replace('other', undefined, sha256(text), pieces(text)), { code: 'changed' });
  await symlink('/etc', join(root, 'away'));
  await assert.rejects(copies.replace('away', undefined, sha256(text), pieces(text)), { code: 'changed' });
  assert.deepEqual((await readdir(root)).sort(), ['away', 'lab', 'other']);
});

test('a master has either the old or the new copy of a catalog after a power failure', async (t) => {
  const { root, copies } = await host(t, { 'lab/catalog.json': '{}' });
  await mkdir(join(root, '.incoming-lab'));
  await rename(join(root, 'lab'), join(root, '.replaced-lab'));
  await copies.recover();
  assert.deepEqual(await readdir(root), ['lab']);
  await mkdir(join(root, '.replaced-lab'));
  await copies.recover();
  assert.deepEqual(await readdir(root), ['lab']);
  const known = new Map([['lab', { digest: sha256('x'), version: 'b', ancestors: ['a'] }]]);
  await copies.writeVersions(known);
  assert.deepEqual(await copies.versions(), known);
  await writeFile(join(root, '.versions.json'), '{"lab":');
  assert.deepEqual(await copies.versions(), new Map());
});
