/** Health of a component whose revision is on trial. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import type { Settings } from '../../../src/host/config/settings.ts';
import type { HostRuntime } from '../../../src/host/node/runtime.ts';
import { operandProcess } from '../../../src/host/openshift/revision-process.ts';
import type { ContainerStatus } from '../../../src/runtime/port.ts';

const HOUR_MS = 3_600_000;

const container = (id: string, attempt: number, createdAtMs: number, state: 'running' | 'exited') =>
  ({
    id,
    attempt,
    createdAtMs,
    state,
    name: 'etcd',
    labels: {
      'io.kubernetes.pod.namespace': 'kube-system',
      'io.kubernetes.pod.name': 'master-etcd-n1',
      'io.kubernetes.pod.uid': 'u',
    },
  }) as unknown as ContainerStatus;

test('finds the container of a trial revision even if the clock was set back after the trial began', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const startMs = Date.now();
  let containers = [container('before', 0, startMs - HOUR_MS / 2, 'exited')];
  const process = operandProcess({
    settings: { ports: { etcd: address.port }, paths: { podLogs: '/nonexistent' } } as unknown as Settings,
    runtime: { runtime: { listContainers: async () => containers } } as unknown as HostRuntime,
    kubelet: () => undefined,
    component: 'etcd',
  });
  try {
    assert.equal((await process.health(startMs)).state, 'starting');
    // Created after the clock was set back by an hour.
    containers = [...containers, container('after', 1, startMs - HOUR_MS + 1_000, 'running')];
    assert.equal((await process.health(startMs)).state, 'healthy');
    // The health of a later trial does not count the run of this trial.
    assert.equal((await process.health(startMs + HOUR_MS)).state, 'starting');
  } finally {
    server.close();
  }
});
