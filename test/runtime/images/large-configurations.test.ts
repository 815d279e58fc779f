/** Configurations of images, whose size their authors choose: lists of images do not grow with them. */
import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { trees } from '../../../src/runtime/directory-removal/index.ts';
import { imageFile, listImages, makeLayout, storeLayout } from '../../../src/runtime/images/layout.ts';

const LARGE = Array.from({ length: 800 }, (_, i) => `E${i}=${'x'.repeat(1000)}`);
const idOf = (i: number): string => `sha256:${String(i).padStart(64, '0')}`;

test('lists images without keeping their configurations in memory, and detects changed files', async () => {
  const root = await mkdtemp(join(tmpdir(), 'he-configs-'));
  try {
    const layout = storeLayout(root, '1-1', trees);
    await makeLayout(layout);
    const write = async (i: number, user: string): Promise<void> => {
      const config = { env: LARGE, user };
      const stored = { layers: [`layer-${i}`], sizeBytes: i, config, raw: JSON.stringify({ config: { Env: LARGE } }) };
      const aside = join(layout.tmp, 'new');
      await writeFile(aside, JSON.stringify(stored));
      await rename(aside, imageFile(layout, idOf(i)));
    };
    for (let i = 0; i < 20; i++) await write(i, 'app:app');
    const images = await listImages(layout);
    assert.deepEqual(
      images.find(({ id }) => id === idOf(7)),
      { id: idOf(7), layers: ['layer-7'], sizeBytes: 7, user: 'app:app' },
    );
    const size = JSON.stringify(images).length;
    assert.ok(size < 20 * 1024, `${size} bytes for ${images.length} images`);

    await write(7, 'other');
    await rm(imageFile(layout, idOf(8)));
    const after = await listImages(layout);
    assert.deepEqual([after.length, after.find(({ id }) => id === idOf(7))?.user], [19, 'other']);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
