import assert from 'node:assert/strict';
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { test } from 'node:test';
import { watchFiles } from './watchdog.ts';

const CHECK_MS = 100;

/** A process as runners start it: the file is the last argument, the output goes to the runner. */
function startFile(file: string, script: string): ChildProcessByStdio<null, Readable, Readable> {
  return spawn(process.execPath, ['-e', script, file], { stdio: ['ignore', 'pipe', 'pipe'] });
}

test('kills a test file that exceeds its time limit, and the processes that the test file started', async () => {
  const file = startFile(
    '/endless.test.ts',
    `process.on('SIGTERM', () => {}); const { pid } = require('node:child_process').spawn('sleep', ['60']);
     console.log(pid); setInterval(() => {}, 1000)`,
  );
  const started = Number(String((await once(file.stdout, 'data'))[0]));
  const killed = Promise.withResolvers<readonly string[]>();
  const end = watchFiles(new Set(['/endless.test.ts']), 200, (_file, pids) => killed.resolve(pids), CHECK_MS);
  const [, signal] = await once(file, 'close');
  assert.equal(signal, 'SIGKILL');
  assert.deepEqual((await killed.promise).map((each) => Number(each.split(' ')[0])).sort(), [file.pid, started].sort());
  end();
});

test('kills a process that holds the output of an ended test file open', async () => {
  const file = startFile(
    '/leaves.test.ts',
    `require('node:child_process').spawn('sleep', ['60'], { stdio: ['ignore', 'inherit', 'inherit'], detached: true }).unref();
     setTimeout(() => {}, 700)`,
  );
  const end = watchFiles(new Set(['/leaves.test.ts']), 1_000, () => {}, CHECK_MS);
  const [code] = await once(file, 'close');
  assert.equal(code, 0);
  end();
});

test('does not kill a test file before its time limit', async () => {
  const file = startFile('/brief.test.ts', 'setTimeout(() => {}, 300)');
  const end = watchFiles(new Set(['/brief.test.ts']), 60_000, () => assert.fail('killed'), CHECK_MS);
  assert.deepEqual(await once(file, 'close'), [0, null]);
  end();
});
