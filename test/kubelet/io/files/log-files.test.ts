import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { logFiles } from '../../../../src/kubelet/io/files/log-files.ts';
import { openAfterFailingStat } from '../../../support/failing-stat.ts';

test('rejects a container log that is a pipe or a directory immediately', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'he-log-'));
  const pipe = join(directory, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const outcome = await Promise.race([
    logFiles.open(pipe).then(
      () => 'opened',
      (error: Error) => error.message,
    ),
    sleep(1_000, 'stuck', { ref: false }),
  ]);
  if (outcome === 'stuck') execFileSync('sh', ['-c', ': > "$0"', pipe]);
  assert.equal(outcome, `${pipe}: is not a regular file`);
  await assert.rejects(logFiles.open(directory), /not a regular file/);
  await assert.rejects(logFiles.open(join(directory, 'none')), { code: 'ENOENT' });
  const path = join(directory, 'log');
  await writeFile(path, 'text');
  assert.equal(await openAfterFailingStat(path, () => assert.rejects(logFiles.open(path), /EIO/)), 0);
  const log = await logFiles.open(path);
  assert.equal(await log.size(), 4);
  await log.close();
  await rm(directory, { recursive: true });
});
