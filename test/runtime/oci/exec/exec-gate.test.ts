import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { openGate } from '../../../../src/runtime/oci/exec/exec-gate.ts';

const run = promisify(execFile);
const alive = async (): Promise<boolean> => true;
let directory = '';
const fifo = (): string => join(directory, 'exec.fifo');

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'exec-gate-'));
});
after(() => rm(directory, { recursive: true }));

test('opens the exec fifo on which a started container waits, and removes the fifo', async () => {
  await run('mkfifo', [fifo()]);
  const opened = openGate(directory, alive);
  // Opening for writing waits for the reader, as runc's first process does.
  const writer = await open(fifo(), 'w');
  await writer.write('0');
  await writer.close();
  assert.equal(await opened, true);
  assert.equal(existsSync(fifo()), false);
});

test('opens the exec fifo if the container opened it earlier', async () => {
  await run('mkfifo', [fifo()]);
  const writing = open(fifo(), 'w').then(async (writer) => {
    await writer.write('0');
    await writer.close();
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(await openGate(directory, alive), true);
  await writing;
});

test('reports a container that ended before it opened the exec fifo, and keeps the fifo for the runtime', async () => {
  await run('mkfifo', [fifo()]);
  assert.equal(await openGate(directory, async () => false), false);
  assert.equal(existsSync(fifo()), true);
  await rm(fifo());
});

test('leaves the start of a container to the runtime if the exec fifo does not exist', async () => {
  assert.equal(await openGate(directory, alive), false);
  await writeFile(fifo(), '');
  assert.equal(await openGate(directory, alive), false);
});
