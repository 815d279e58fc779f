/** Image layers that add entries to a directory and then replace it by a link to the host. */
import assert from 'node:assert/strict';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readAttributes } from '../../../src/runtime/images/layers/attributes.ts';
import { dockerArchive } from '../../conformance/busybox-image.ts';
import { attributedFile, END_OF_ARCHIVE, tarBlocks } from '../../runtime/images/archives.ts';
import type { AttackCase } from '../port.ts';

/** Extended attribute `security.capability` for cap_setuid=ep. */
const CAPABILITY = Buffer.from('0100000280000000000000000000000000000000', 'hex');
const none = Buffer.alloc(0);

export const cases: readonly AttackCase[] = [
  {
    finding: 24,
    title: 'an image layer cannot set a file capability, owner, mode or time outside of its directory',
    attack: async ({ appliance, pods }) => {
      const host = join(pods.scratch, 'host-programs');
      await mkdir(join(host, 'd'), { recursive: true });
      for (const name of ['tool', 'd/deep']) await writeFile(join(host, name), 'host', { mode: 0o700 });
      const paths = ['tool', 'd', 'd/deep'];
      const state = async (): Promise<unknown> => [
        await Promise.all(
          ['', ...paths].map(async (path) => {
            const { mode, uid, gid, mtimeMs, ctimeMs } = await stat(join(host, path));
            return [path, mode, uid, gid, mtimeMs, ctimeMs];
          }),
        ),
        [...(await readAttributes(host, paths))],
        await readdir(host, { recursive: true }),
      ];
      const before = await state();
      const layer = Buffer.concat([
        tarBlocks('bin/', '5', none),
        tarBlocks('bin/d/', '5', none),
        attributedFile('bin/tool', 'evil', { 'security.capability': CAPABILITY }),
        attributedFile('bin/d/deep', 'evil', { 'security.capability': CAPABILITY }),
        tarBlocks('bin', '2', none, host),
        tarBlocks('sbin', '2', none, host),
        attributedFile('sbin/tool', 'evil', { 'security.capability': CAPABILITY }),
        tarBlocks('sbin/d/', '5', none),
        tarBlocks('sbin/.wh.d', '0', none),
        attributedFile('up', 'evil', { 'security.capability': CAPABILITY }),
        tarBlocks('up', '2', none, '../../../../../../../../../../../../etc'),
        END_OF_ARCHIVE,
      ]);
      const archive = join(pods.scratch, 'outside.tar');
      await writeFile(archive, await dockerArchive({ tags: ['lab.local/outside:1'], layers: [layer] }));
      const imported = await appliance.hyperedge(['image', 'import', '--root', appliance.root, archive]);
      assert.equal(imported.code, 0, imported.stderr);
      assert.deepEqual(await state(), before);
    },
  },
];
