import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { silentLog } from '../../../src/base/log.ts';
import { type OwnChildren, trackChildren } from '../../../src/host/process/children.ts';

const MODULE = fileURLToPath(new URL('../../../src/host/process/children.ts', import.meta.url));

const isAlive = (pid: number | undefined): boolean => {
  try {
    return process.kill(pid ?? 0, 0);
  } catch {
    return false;
  }
};

async function tracked(body: (children: OwnChildren) => Promise<void>): Promise<void> {
  const children = trackChildren();
  try {
    await body(children);
  } finally {
    children.dispose();
  }
}

/** Starts a shell. Resolves when the shell has set its trap. */
async function shell(script: string, detached = false): Promise<ChildProcess> {
  const child = spawn('/bin/sh', ['-c', `${script}; echo ready; read line`], { detached });
  await once(child.stdout, 'data');
  return child;
}

test('terminates running children, kills children that ignore SIGTERM, and leaves detached children', () =>
  tracked(async (children) => {
    const obedient = await shell(':');
    const stubborn = await shell("trap '' TERM");
    const detached = await shell(':', true);
    try {
      await children.end(silentLog);
      assert.deepEqual([obedient.signalCode, stubborn.signalCode], ['SIGTERM', 'SIGKILL']);
      assert.equal(isAlive(detached.pid), true);
    } finally {
      detached.kill('SIGKILL');
      await once(detached, 'exit');
    }
  }));

test('does not wait for children that have exited or could not be started', () =>
  tracked(async (children) => {
    await once(spawn('true'), 'exit');
    await once(spawn('/nonexistent'), 'error');
    const began = performance.now();
    await children.end(silentLog);
    assert.ok(performance.now() - began < 500);
  }));

test('kills children when the process exits without an orderly stop', async () => {
  const script = `
    const { trackChildren } = await import(${JSON.stringify(MODULE)});
    const { spawn } = await import('node:child_process');
    trackChildren();
    console.log(spawn('sleep', ['600'], { stdio: 'ignore' }).pid);
    process.exit(3);
  `;
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, ['--input-type=module', '-e', script], (_, stdout) => resolve(stdout));
  });
  const pid = Number(output);
  assert.ok(pid > 1, output);
  for (let i = 0; i < 100 && isAlive(pid); i += 1) await new Promise((resolve) => setTimeout(resolve, 20));
  const survived = isAlive(pid);
  if (survived) process.kill(pid, 'SIGKILL');
  assert.equal(survived, false);
});
