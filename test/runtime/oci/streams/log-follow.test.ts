import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { followLog } from '../../../../src/runtime/oci/streams/log-follow.ts';
import { openAfterFailingStat, openDescriptors } from '../../../support/failing-stat.ts';

test('closes the log file if it cannot be watched or inspected', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-follow-'));
  try {
    const path = join(directory, '0.log');
    await writeFile(path, '');
    const watch = (): never => {
      throw new Error('ENOENT: no such file or directory, watch');
    };
    await assert.rejects(followLog(path, watch), /watch/);
    assert.equal(await openDescriptors(path), 0);
    assert.equal(await openAfterFailingStat(path, () => assert.rejects(followLog(path, watch), /EIO/)), 0);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
