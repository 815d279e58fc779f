/** The cgroup of an exec on the unified hierarchy, with plain processes instead of a container's. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readCgroupMounts } from '../../../../src/runtime/oci/cgroups.ts';
import { chargeToPod, createExecCgroup, removeExecCgroups } from '../../../../src/runtime/oci/exec/exec-cgroup.ts';
import { realClock } from '../lab.ts';

const { unified } = await readCgroupMounts();
const skip = process.getuid?.() !== 0 ? 'needs root' : unified === undefined ? 'needs cgroup v2' : false;

async function inContainer(work: (directory: string) => Promise<void>): Promise<void> {
  const pod = join(unified ?? '', `exec-test-${process.pid}`);
  const directory = join(pod, 'container');
  await mkdir(directory, { recursive: true });
  try {
    await work(directory);
  } finally {
    for (const name of await readdir(directory).catch(() => [])) await rmdir(join(directory, name)).catch(() => {});
    for (const path of [directory, join(pod, 'serving'), pod]) await rmdir(path).catch(() => {});
  }
}

/** Starts a process that starts another in its own session, both in the cgroup. */
async function start(cgroup: string): Promise<{ readonly pid: number; readonly ended: Promise<void> }> {
  const child = spawn('sh', ['-c', 'read go; setsid sleep 1000 & wait'], { stdio: ['pipe', 'ignore', 'ignore'] });
  await writeFile(join(cgroup, 'cgroup.procs'), String(child.pid));
  child.stdin.end('go\n');
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const pids = async (): Promise<string> => readFile(join(cgroup, 'cgroup.procs'), 'utf8');
  while ((await pids()).trim().split('\n').length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  return { pid: child.pid ?? 0, ended };
}

test('killing an exec ends all its processes and no other process of the container', { skip }, () =>
  inContainer(async (directory) => {
    const cgroups = { unified: directory };
    const exec = await createExecCgroup(cgroups, 'one', realClock);
    assert.deepEqual(exec.options, ['--cgroup=exec-one']);
    const other = spawn('sleep', ['1000'], { stdio: 'ignore' });
    await writeFile(join(directory, 'cgroup.procs'), String(other.pid));
    const { ended } = await start(join(directory, 'exec-one'));
    await exec.kill();
    await ended;
    await exec.dissolve();
    assert.ok(!existsSync(join(directory, 'exec-one')));
    assert.equal((await readFile(join(directory, 'cgroup.procs'), 'utf8')).trim(), String(other.pid));
    other.kill('SIGKILL');
    await new Promise((resolve) => other.once('exit', resolve));
  }),
);

test(
  'processes left by an exec continue in the container, and those of a former host process are killed',
  { skip },
  () =>
    inContainer(async (directory) => {
      const cgroups = { unified: directory };
      const exec = await createExecCgroup(cgroups, 'two', realClock);
      const { pid, ended } = await start(join(directory, 'exec-two'));
      await exec.dissolve();
      assert.ok((await readFile(join(directory, 'cgroup.procs'), 'utf8')).split('\n').includes(String(pid)));
      const again = await createExecCgroup(cgroups, 'three', realClock);
      for (const each of (await readFile(join(directory, 'cgroup.procs'), 'utf8')).trim().split('\n'))
        await again.charge(Number(each));
      await removeExecCgroups(cgroups, realClock);
      await ended;
      assert.ok(!existsSync(join(directory, 'exec-three')));
    }),
);

test('moves a host program that serves a pod to a leaf cgroup of the pod', { skip }, () =>
  inContainer(async (directory) => {
    const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
    await chargeToPod({ unified: directory }, child.pid ?? 0);
    const serving = await readFile(join(directory, '../serving/cgroup.procs'), 'utf8');
    assert.equal(serving.trim(), String(child.pid));
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
  }),
);

test('rejects an exec in a container without a cgroup', async () => {
  await assert.rejects(createExecCgroup({}, 'none', realClock), /no cgroup in which an exec could be tracked/);
});
