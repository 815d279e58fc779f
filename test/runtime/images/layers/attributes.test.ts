/** Extended attributes, modes, owners and times of entries are set completely, and never outside of the layer. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { silentLog } from '../../../../src/base/log.ts';
import { trees } from '../../../../src/runtime/directory-removal/index.ts';
import { createImageStore, type ImageStore } from '../../../../src/runtime/images/index.ts';
import { readAttributes } from '../../../../src/runtime/images/layers/attributes.ts';
import { dockerArchive } from '../../../conformance/busybox-image.ts';
import { attributedFile, END_OF_ARCHIVE, tarBlocks } from '../archives.ts';

/** cap_net_raw, and bytes that are not valid text. */
const CAPABILITY = Buffer.from('0100000200200000ff000000000000fe00000080', 'hex');
const NAME = 'security.capability';
const none = Buffer.alloc(0);

describe('extended attributes of image layers', { skip: process.getuid?.() === 0 ? false : 'needs root' }, () => {
  let scratch = '';
  let store: ImageStore;
  let rounds = 0;

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'image-attributes-'));
  });
  after(() => rm(scratch, { recursive: true, force: true }));
  beforeEach(() => {
    rounds += 1;
    store = createImageStore({ root: join(scratch, `store${rounds}`), trees, log: silentLog });
  });

  async function imported(...layers: (readonly Buffer[])[]): Promise<readonly string[]> {
    const archive = join(scratch, `${randomBytes(4).toString('hex')}.tar`);
    const bytes = layers.map((blocks) => Buffer.concat([...blocks, END_OF_ARCHIVE]));
    await writeFile(archive, await dockerArchive({ tags: ['t'], layers: bytes }));
    await store.importArchive(archive);
    const held = await store.hold('t', 'test');
    return held.layers.map((each) => join(held.layerRoot, each));
  }

  const attribute = async (root: string, path: string, name = NAME): Promise<string | undefined> =>
    (await readAttributes(root, [path])).get(path)?.get(name)?.toString('hex');

  it('sets no extended attribute outside of the layer if a directory was replaced by a symbolic link', async () => {
    const host = join(scratch, 'host');
    await mkdir(join(host, 'd'), { recursive: true });
    for (const name of ['tool', 'hard', 'd/deep']) await writeFile(join(host, name), 'host', { mode: 0o640 });
    const state = (): Promise<unknown> =>
      Promise.all(
        ['', 'tool', 'hard', 'd', 'd/deep'].map(async (name) => {
          const { mode, uid, gid, mtimeMs, ctimeMs } = await stat(join(host, name));
          return { name, mode, uid, gid, mtimeMs, ctimeMs, attribute: await attribute(host, name === '' ? '.' : name) };
        }),
      );
    const before = await state();
    const [layer = ''] = await imported([
      tarBlocks('x/', '5', none),
      tarBlocks('x/d/', '5', none),
      attributedFile('x/tool', 'evil', { [NAME]: CAPABILITY, 'user.a': Buffer.from('a') }),
      attributedFile('x/d/deep', 'evil', { [NAME]: CAPABILITY }),
      tarBlocks('x/hard', '1', none, 'x/tool'),
      tarBlocks('x/pipe', '6', none),
      tarBlocks('x', '2', none, host),
      attributedFile('y/tool', 'evil', { [NAME]: CAPABILITY }),
      tarBlocks('y/tool', '2', none, join(host, 'tool')),
      attributedFile('z', 'evil', { [NAME]: CAPABILITY }),
      tarBlocks('z', '2', none, join(host, 'tool')),
    ]);
    assert.deepEqual(await state(), before);
    await assert.rejects(stat(join(host, 'pipe')), { code: 'ENOENT' });
    assert.equal((await readAttributes(layer, ['x', 'y/tool', 'z'])).size, 0);
    assert.deepEqual(await store.verify(), []);
  });

  it('preserves the bytes of extended attributes on files, hard links and directories of a layer', async () => {
    const [layer = ''] = await imported([
      tarBlocks('d/', '5', none),
      attributedFile('d/tool', 'tool', { [NAME]: CAPABILITY, 'user.ü ': Buffer.from([0, 255, 10, 61]) }),
      tarBlocks('d/again', '1', none, 'd/tool'),
      attributedFile('plain', 'plain', { 'trusted.overlay.opaque': Buffer.from('y'), 'security.selinux': none }),
    ]);
    for (const path of ['d/tool', 'd/again']) {
      assert.equal(await attribute(layer, path), CAPABILITY.toString('hex'));
      assert.equal(await attribute(layer, path, 'user.ü '), '00ff0a3d');
    }
    assert.equal((await readAttributes(layer, ['plain'])).size, 0);
    assert.deepEqual(await store.verify(), []);
  });

  it('copies extended attributes with a file of a lower layer that a hard link refers to', async () => {
    const [layer = ''] = await imported(
      [attributedFile('tool', 'tool', { [NAME]: CAPABILITY })],
      [tarBlocks('copy', '1', none, 'tool')],
    );
    assert.equal(await attribute(layer, 'copy'), CAPABILITY.toString('hex'));
  });

  it('extended attributes of image layers are preserved by export and import', async () => {
    await imported([attributedFile('tool', 'tool', { [NAME]: CAPABILITY })]);
    const archive = join(scratch, 'export.tar');
    await store.exportArchive(['t'], archive);
    const other = createImageStore({ root: join(scratch, 'other'), trees, log: silentLog });
    await other.importArchive(archive);
    const held = await other.hold('t', 'test');
    assert.equal(await attribute(join(held.layerRoot, held.layers[0] ?? ''), 'tool'), CAPABILITY.toString('hex'));
  });

  it('an image import fails if an extended attribute cannot be set', async () => {
    const large = { 'user.large': Buffer.alloc(100_000, 1) };
    await assert.rejects(imported([attributedFile('tool', 'tool', large)]), {
      code: 'image-pull',
      message: /^layer refused: attributes user\.large of "tool": /,
    });
    assert.deepEqual(await store.list(), []);
  });

  it('verification of the image store detects lost extended attributes', async () => {
    const [layer = ''] = await imported([attributedFile('tool', 'tool', { [NAME]: CAPABILITY })]);
    await copyFile(join(layer, 'tool'), join(layer, 'copy'));
    await rename(join(layer, 'copy'), join(layer, 'tool'));
    assert.deepEqual(
      (await store.verify()).map((fault) => fault.replace(/^layer \w+: /, '')),
      ['tool has lost its attribute security.capability'],
    );
  });
});
