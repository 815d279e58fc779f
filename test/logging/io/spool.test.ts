import assert from 'node:assert/strict';
import { mkdtemp, readdir, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openSpool } from '../../../src/logging/io/spool.ts';
import type { LogRecord } from '../../../src/logging/port.ts';

test('keeps a batch that cannot be read, and skips a batch that is missing', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-spool-'));
  try {
    const spool = await openSpool(directory, 1 << 20);
    const record = (body: string) => ({ body }) as unknown as LogRecord;
    for (const body of ['missing', 'unreadable']) await spool.append([record(body)], {});
    const [missing = '', unreadable = ''] = (await readdir(directory)).filter((name) => /^\d/.test(name)).sort();
    await rm(join(directory, missing));
    await rename(join(directory, unreadable), join(directory, 'aside'));
    // A read of the first page of this file fails with EIO.
    await symlink('/proc/self/mem', join(directory, unreadable));
    await assert.rejects(spool.oldest(), /EIO/);
    await rename(join(directory, 'aside'), join(directory, unreadable));
    assert.deepEqual((await spool.oldest())?.records, [record('unreadable')]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
