import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { StatsProvider } from '../../../src/kubelet/server/stats.ts';
import { RuntimeError } from '../../../src/runtime/port.ts';

test('reports the remaining containers when one container is removed during the measurement', async () => {
  const status = (id: string) => ({ id, name: id, state: 'running', startedAtMs: 0 });
  const usage = { timestampMs: 0, bootTimeMs: 0, cpuUsageNanoSeconds: 0, memoryWorkingSetBytes: 0 };
  const stats = {
    timestampMs: 0,
    cpuUsageCoreNanoSeconds: 1e9,
    memoryUsageBytes: 2,
    memoryWorkingSetBytes: 1,
    memoryRssBytes: 1,
    pids: 1,
  };
  const services = {
    clock: { nowMs: () => 0 },
    log: silentLog,
    settings: { nodeName: 'n', cgroupRoot: '/', paths: { volumes: '/', images: '/' } },
    host: { usage: async () => usage, fileSystem: async () => ({}) },
    cgroups: { usage: async () => undefined },
    view: { get: () => ({ containers: [status('kept'), status('removed')] }) },
    runtime: {
      containerStats: async (id: string) => {
        if (id === 'removed') throw new RuntimeError('not-found', 'container removed does not exist');
        return stats;
      },
    },
  };
  const pod = { metadata: { name: 'p', namespace: 'default', uid: 'u' }, spec: { containers: [] } };
  const workers = [{ uid: 'u', pod, finished: false, status: {} }];
  const provider = new StatsProvider(services as never, { workers: () => workers as never }, () => []);

  const summary = (await provider.summary()) as { pods: { containers: { name: string }[] }[] };
  assert.deepEqual(
    summary.pods.map(({ containers }) => containers.map(({ name }) => name)),
    [['kept']],
  );
  assert.match(await provider.resourceMetrics(), /container_cpu_usage_seconds_total\{container="kept"/);
  const { pods } = await provider.measure();
  assert.equal(pods[0]?.containers.length, 1);
});
