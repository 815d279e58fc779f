/** The report about a host process that exists but does not answer. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { pathsBelow } from '../../../src/host/config/paths.ts';
import { takeInstanceLock } from '../../../src/host/run/instance-lock.ts';
import { readStatus } from '../../../src/host/status/status.ts';

test('distinguishes a host process that does not answer from a host process that is not running', {
  timeout: 60_000,
}, async () => {
  const root = await mkdtemp(join(tmpdir(), 'he-status-'));
  const paths = pathsBelow(root);
  const silent = createServer();
  try {
    await mkdir(dirname(paths.nodeConfig), { recursive: true });
    await writeFile(paths.nodeConfig, '{}\n');
    const lock = await takeInstanceLock(paths.pidFile, root);
    await mkdir(dirname(paths.controlSocket), { recursive: true });
    silent.listen(paths.controlSocket);
    await once(silent, 'listening');
    const hanging = await readStatus(root);
    assert.equal(hanging.code, 1);
    assert.match(hanging.problems[0] ?? '', new RegExp(`\\(pid ${process.pid}\\) runs but does not answer at ${root}`));
    assert.equal(hanging.document.next?.[0], `kill ${process.pid}; hyperedge run --root ${root}`);

    // The PID belongs to another process, which got the same number later.
    const held = await readFile(paths.pidFile, 'utf8');
    await lock.release();
    await writeFile(paths.pidFile, held.replace(/ \d+/, ' 1'));
    silent.close();
    const stopped = await readStatus(root);
    assert.match(stopped.problems[0] ?? '', /the host process does not run here/);
    assert.equal(stopped.document.next?.[0], `hyperedge run --root ${root}`);
  } finally {
    silent.close();
    await rm(root, { recursive: true, force: true });
  }
});
