import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { watchFile } from './watchdog.ts';

/** What node's runner starts for a file: its last argument is the file, its output sockets of the runner's. */
function startFile(file: string, script: string) {
  return spawn(process.execPath, ['-e', script, file], { stdio: ['ignore', 'pipe', 'pipe'] });
}

test('a file that does not end is killed, with what it started', async () => {
  const file = startFile(
    '/endless.test.ts',
    `process.on('SIGTERM', () => {}); const { pid } = require('node:child_process').spawn('sleep', ['60']);
     console.log(pid); setInterval(() => {}, 1000)`,
  );
  const started = Number(String((await once(file.stdout, 'data'))[0]));
  const killed = Promise.withResolvers<readonly string[]>();
  watchFile('/endless.test.ts', 200, killed.resolve);
  const [, signal] = await once(file, 'close');
  assert.equal(signal, 'SIGKILL');
  assert.deepEqual((await killed.promise).map((each) => Number(each.split(' ')[0])).sort(), [file.pid, started].sort());
});

test('what holds the output of a file that has ended is killed', async () => {
  const file = startFile(
    '/leaves.test.ts',
    `require('node:child_process').spawn('sleep', ['60'], { stdio: ['ignore', 'inherit', 'inherit'], detached: true }).unref();
     setTimeout(() => {}, 700)`,
  );
  watchFile('/leaves.test.ts', 1_000, () => {});
  const [code] = await once(file, 'close');
  assert.equal(code, 0);
});

test('nothing is killed before its time', async () => {
  const file = startFile('/brief.test.ts', 'setTimeout(() => {}, 300)');
  const ended = watchFile('/brief.test.ts', 60_000, () => assert.fail('killed'));
  assert.deepEqual(await once(file, 'close'), [0, null]);
  ended();
});
