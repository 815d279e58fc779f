import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { trees } from '../../../src/runtime/directory-removal/index.ts';
import { createImageStore } from '../../../src/runtime/images/index.ts';
import {
  amd64Level,
  choosePlatform,
  type ImagePlatform,
  parsePlatform,
  platformOf,
} from '../../../src/runtime/images/platforms.ts';
import { sha256, tarBytes } from '../../conformance/busybox-image.ts';
import { file, ociArchive, ociImage } from './archives.ts';

const V2 = 'cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3';
const V3 = `${V2} abm avx avx2 bmi1 bmi2 f16c fma movbe xsave`;

describe('selection of image platforms', () => {
  const of = (text: string): { platform: ImagePlatform | undefined; text: string } => {
    const [os = '', architecture = '', variant = ''] = text.split('/');
    return { platform: text === '' ? undefined : { os, architecture, variant }, text };
  };
  const chosen = (architecture: string, level: number, ...texts: string[]): string | undefined =>
    choosePlatform(texts.map(of), platformOf(architecture, level))?.text;

  it('selects an amd64 image without a variant first, then the highest variant that the processor supports', () => {
    const all = ['linux/amd64/v4', 'linux/amd64/v3', 'linux/amd64/v2', 'linux/amd64'];
    for (const level of [1, 2, 3, 4]) assert.equal(chosen('amd64', level, ...all), 'linux/amd64');
    assert.equal(chosen('amd64', 2, 'linux/amd64/v3', 'linux/amd64/v2'), 'linux/amd64/v2');
    assert.equal(chosen('amd64', 4, 'linux/amd64/v2', 'linux/amd64/v3'), 'linux/amd64/v3');
    assert.equal(chosen('amd64', 2, 'linux/amd64/v3'), undefined);
    assert.equal(chosen('amd64', 3, 'linux/amd64/v2', 'linux/amd64/v1'), 'linux/amd64/v1');
    assert.equal(chosen('amd64', 1, 'linux/arm64', 'windows/amd64', 'unknown/unknown'), undefined);
  });

  it('selects the highest arm and arm64 image variant that the processor supports', () => {
    assert.equal(chosen('arm64', 1, 'linux/arm64/v9', 'linux/arm64/v8', 'linux/amd64'), 'linux/arm64/v8');
    assert.equal(chosen('arm64', 1, 'linux/arm64/v9'), undefined);
    assert.equal(chosen('arm', 1, 'linux/arm/v5', 'linux/arm/v8', 'linux/arm/v7', 'linux/arm/v6'), 'linux/arm/v7');
  });

  it('selects a manifest without a platform only if no manifest with a platform matches', () => {
    assert.equal(chosen('amd64', 1, '', 'linux/x86_64'), 'linux/x86_64');
    assert.equal(chosen('amd64', 1, '', 'linux/arm64'), '');
  });

  it('detects the x86-64 microarchitecture level of a processor', () => {
    const level = (flags: string): number => amd64Level(`processor\t: 0\nflags\t\t: fpu ${flags}\nbugs\t\t:\n`);
    assert.deepEqual([level(''), level(V2), level(V3), level(V3.replace('avx2', ''))], [1, 2, 3, 2]);
    assert.equal(level(`${V3} avx512f avx512bw avx512cd avx512dq avx512vl`), 4);
  });

  it('parses image platforms such as linux/amd64/v3', () => {
    assert.deepEqual(parsePlatform('linux/aarch64'), { architecture: 'arm64', variants: [''] });
    assert.deepEqual(parsePlatform('linux/amd64/v3')?.variants, ['', 'v3', 'v2']);
    for (const text of ['', 'arm64', 'windows/amd64', 'linux/', 'linux/a/b/c', 'linux/../x'])
      assert.equal(parsePlatform(text), undefined, text);
  });

  it('rejects an image of another platform unless the platform is requested explicitly', async () => {
    const scratch = await mkdtemp(join(tmpdir(), 'image-platforms-'));
    try {
      const layer = await tarBytes([file('a', 'x')]);
      const archive = join(scratch, 'arm64.tar');
      const image = ociImage([{ bytes: layer, diffId: sha256(layer) }], 'arm64');
      await writeFile(archive, await ociArchive(image, 'lab.local/a:1'));
      const options = { root: join(scratch, 'store'), trees, log: silentLog, architecture: 'amd64' };
      const store = createImageStore(options);
      await assert.rejects(store.importArchive(archive), {
        code: 'image-pull',
        message:
          /image lab\.local\/a:1: the image is for linux\/arm64, .* on linux\/amd64; .* --platform linux\/arm64$/,
      });
      assert.deepEqual(await store.list(), []);
      const platform = parsePlatform('linux/arm64');
      assert.ok(platform !== undefined);
      await createImageStore({ ...options, platform }).importArchive(archive);
      assert.equal((await store.list()).length, 1);
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  });
});
