import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { isRunning, processStart } from '../../../src/runtime/oci/processes.ts';

const run = promisify(execFile);

test('a process that has exited does not run, and a reused pid is another process', async () => {
  const start = (await processStart(process.pid)) ?? '';
  assert.equal(await isRunning(process.pid, start), true);
  assert.equal(await isRunning(process.pid, `${start}0`), false);
  assert.equal(await isRunning(2 ** 22 + 1, start), false);
});

test('a process does not count as exited if no file descriptor is free to inspect it', async () => {
  const module = new URL('../../../src/runtime/oci/processes.ts', import.meta.url).href;
  const script = `
    import { openSync, closeSync } from 'node:fs';
    import { isRunning, processStart } from '${module}';
    const start = await processStart(process.pid);
    const held = [];
    try { for (;;) held.push(openSync('/dev/null')); } catch {}
    const answer = await isRunning(process.pid, start).catch((error) => error.code);
    for (const each of held) closeSync(each);
    console.log(answer);
  `;
  const { stdout } = await run('prlimit', ['--nofile=64', process.execPath, '--input-type=module', '--eval', script]);
  assert.equal(stdout.trim(), 'EMFILE');
});
