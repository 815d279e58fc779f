import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CatalogDigests } from '../../../../../src/openshift/operators/olm/io/digests.ts';

test('catalog copies have the same digest on every host exactly if their content is equal', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'he-digests-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  const write = async (host: string, file: string, text: string): Promise<void> => {
    await mkdir(join(root, host, 'lab', 'more'), { recursive: true });
    await writeFile(join(root, host, 'lab', file), text);
  };
  for (const host of ['m1', 'm2']) {
    await write(host, 'catalog.json', '{}');
    await write(host, 'more/second.yaml', 'a: b');
  }
  const [first, second] = [new CatalogDigests(join(root, 'm1')), new CatalogDigests(join(root, 'm2'))];
  const before = await first.all();
  assert.match(before['lab'] ?? '', /^sha256:[0-9a-f]{64}$/);
  assert.deepEqual(await second.all(), before);
  await write('m2', 'README.txt', 'no part of the catalog');
  assert.deepEqual(await second.all(), before);
  await write('m2', 'more/second.yaml', 'a: c');
  assert.notDeepEqual(await second.all(), before);
});

test('computes no digest for files, links and empty directories beside the catalogs', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'he-digests-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'empty'));
  await writeFile(join(root, 'file.json'), '{}');
  await symlink('/etc', join(root, 'away'));
  assert.deepEqual(await new CatalogDigests(root).all(), {});
  assert.deepEqual(await new CatalogDigests(join(root, 'absent')).all(), {});
});
