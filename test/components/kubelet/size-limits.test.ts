import assert from 'node:assert/strict';
import { link, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { diskUsage } from '../../../src/components/kubelet/upkeep/size-limits.ts';

test('disk usage counts what du counts: no links followed, no file twice, and stops when it knows enough', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'kubelet-usage-'));
  try {
    const outside = join(directory, 'outside');
    const volume = join(directory, 'volume');
    await mkdir(join(volume, 'deep/er'), { recursive: true });
    await mkdir(outside);
    await writeFile(join(outside, 'big'), Buffer.alloc(4_000_000, 1));
    await symlink(outside, join(volume, 'out'));
    const before = await diskUsage(volume, Number.POSITIVE_INFINITY);
    assert.ok(before < 100_000, `${before} bytes of directories and a link`);
    await writeFile(join(volume, 'deep/er/file'), Buffer.alloc(1_000_000, 1));
    await link(join(volume, 'deep/er/file'), join(volume, 'again'));
    const full = await diskUsage(volume, Number.POSITIVE_INFINITY);
    assert.ok(full - before >= 1_000_000 && full - before < 1_100_000, `${full - before} bytes for one file of 1 MB`);
    for (let index = 0; index < 20; index += 1) await writeFile(join(volume, `f${index}`), Buffer.alloc(100_000, 1));
    assert.ok((await diskUsage(volume, 150_000)) < 1_500_000);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
