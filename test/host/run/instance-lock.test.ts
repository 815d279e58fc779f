import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkPort } from '../../../src/host/network/ports.ts';
import { takeInstanceLock } from '../../../src/host/run/instance-lock.ts';

async function withFile(body: (file: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'lock-'));
  try {
    await body(join(directory, 'run/run.pid'));
  } finally {
    await rm(directory, { recursive: true });
  }
}

test('the instance lock rejects a second start with the PID of the first, and allows a start after release', () =>
  withFile(async (file) => {
    const lock = await takeInstanceLock(file, '/srv/x');
    await assert.rejects(takeInstanceLock(file, '/srv/x'), {
      code: 'in-use',
      message: new RegExp(`/srv/x with pid ${process.pid};`),
    });
    await lock.release();
    await (await takeInstanceLock(file, '/srv/x')).release();
  }));

test('ignores the lock of a killed process, even if its pid is in use again', () =>
  withFile(async (file) => {
    await (await takeInstanceLock(file, '/')).release();
    const child = spawn('sleep', ['60']);
    await once(child, 'spawn');
    try {
      // The pid exists, but has another start time.
      await writeFile(file, `${child.pid} 12345\n`);
      await (await takeInstanceLock(file, '/')).release();
    } finally {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await writeFile(file, '');
    const lock = await takeInstanceLock(file, '/');
    assert.match(await readFile(file, 'utf8'), new RegExp(`^${process.pid} \\d+\n$`));
    await lock.release();
  }));

test('gives the lock to exactly one of many simultaneous starts', () =>
  withFile(async (file) => {
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => takeInstanceLock(file, '/')));
    assert.equal(outcomes.filter((each) => each.status === 'fulfilled').length, 1);
  }));

test('reports a port in use with its component and the field to change', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  try {
    await assert.rejects(checkPort({ address: '127.0.0.1', port, field: 'ports.api', what: 'the API server' }), {
      code: 'address-in-use',
      message: `port ${port} for the API server is in use; free it or set ports.api in bootstrap.yaml`,
    });
  } finally {
    server.close();
  }
  await checkPort({ address: '127.0.0.1', port, field: 'ports.api', what: 'the API server' });
});
