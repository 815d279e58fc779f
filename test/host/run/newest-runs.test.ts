/** Order of containers and logs of a component after the clock was set back. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { findContainerLogs } from '../../../src/host/control/container-logs.ts';
import { newestRunsFirst } from '../../../src/host/control/restart-component.ts';
import type { ContainerStatus } from '../../../src/runtime/port.ts';

const NOW_MS = Date.parse('2026-11-24T12:00:00Z');
const FUTURE_MS = Date.parse('2031-01-01T00:00:00Z');

const run = (
  id: string,
  uid: string,
  attempt: number,
  createdAtMs: number,
  state: ContainerStatus['state'] = 'exited',
): ContainerStatus => ({
  id,
  sandboxId: uid,
  name: 'api',
  attempt,
  image: '',
  imageId: '',
  state,
  createdAtMs,
  startedAtMs: createdAtMs,
  finishedAtMs: 0,
  exitCode: 0,
  reason: '',
  message: '',
  logPath: '',
  pid: 0,
  labels: { 'io.kubernetes.pod.uid': uid },
  annotations: {},
});

const order = (...runs: ContainerStatus[]): string[] => newestRunsFirst(runs, NOW_MS).map(({ id }) => id);

test('orders the containers of a pod by attempt, independent of their times', () => {
  assert.deepEqual(order(run('a', 'p', 0, FUTURE_MS), run('c', 'p', 2, NOW_MS - 1000), run('b', 'p', 1, FUTURE_MS)), [
    'c',
    'b',
    'a',
  ]);
});

test('puts a running container before exited containers with future times', () => {
  assert.deepEqual(order(run('old', 'p', 7, FUTURE_MS), run('new', 'q', 0, NOW_MS - 5000, 'running')), ['new', 'old']);
});

test('puts exited containers with future times last', () => {
  assert.deepEqual(order(run('old', 'p', 7, FUTURE_MS), run('new', 'q', 0, NOW_MS - 5000)), ['new', 'old']);
});

test('finds the newest log after the clock was set back', async () => {
  const root = await mkdtemp(join(tmpdir(), 'he-logs-'));
  try {
    const write = async (uid: string, attempt: number, ms: number): Promise<string> => {
      const directory = join(root, `kube-system_master-api-n_${uid}`, 'api');
      await mkdir(directory, { recursive: true });
      const path = join(directory, `${attempt}.log`);
      await writeFile(path, 'x');
      await utimes(path, ms / 1000, ms / 1000);
      return path;
    };
    const dead = await write('p', 3, FUTURE_MS);
    const first = await write('q', 0, FUTURE_MS);
    const second = await write('q', 1, NOW_MS - 1000);
    assert.deepEqual(await findContainerLogs(root, 'master-api', 'api', NOW_MS), [dead, first, second]);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
