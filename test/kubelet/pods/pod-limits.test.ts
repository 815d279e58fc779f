/** Process and log limits for pods without limits in their spec. */
import assert from 'node:assert/strict';
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { setPodDefaults } from '../../../src/api/podspec/defaults.ts';
import { resources } from '../../../src/api/resources.ts';
import { DEFAULT_KUBELET_CONFIG } from '../../../src/kubelet/index.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

const MIB = 1 << 20;
const PIDS = 64;

describe('limits of each pod', { timeout: 120_000 }, () => {
  let lab: KubeletLab;
  const api = new MemoryApi();
  const create = (name: string, script: string): void => {
    const pod: Pod = {
      metadata: { name, namespace: 'default' },
      spec: {
        nodeName: NODE,
        terminationGracePeriodSeconds: 0,
        containers: [{ name: 'main', image: IMAGE, command: ['/bin/sh', '-c', script] }],
      },
      status: { phase: 'Pending' },
    };
    setPodDefaults(pod);
    api.put(resources.pods, pod);
  };
  const pod = (name: string): Pod | undefined => api.get(resources.pods, `default/${name}`);
  const running = (name: string): Promise<true> =>
    eventually(`${name} runs`, () => pod(name)?.status?.containerStatuses?.[0]?.ready === true || undefined);
  /** Contents of the file in the level's cgroup, by controller hierarchy. */
  const cgroupFile = async (level: string, file: string): Promise<string> => {
    const roots = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup'];
    for (const root of roots) {
      const text = await readFile(join(root, lab.cgroup, level, file), 'utf8').catch(() => undefined);
      if (text !== undefined) return text.trim();
    }
    throw new Error(`${level} has no ${file}`);
  };

  before(async () => {
    lab = await createKubeletLab({ podPidsLimit: PIDS });
    await lab.boot(api.access());
    await lab.kubelet().nodeReady;
  });
  after(() => lab?.cleanUp());

  it('process limits apply to each pod and to all pods together', async () => {
    assert.equal(DEFAULT_KUBELET_CONFIG.podPidsLimit, 4_096);
    create('forks', `for n in 1 2 3 4; do sh -c 'while :; do sleep 1000 & done' 2>/dev/null & done; exec sleep 1000`);
    await eventually('the pod has all of its processes', async () => {
      const uid = pod('forks')?.metadata?.uid ?? '';
      const count = await cgroupFile(`kubepods/besteffort/pod${uid}`, 'pids.current').catch(() => '0');
      return Number(count) >= PIDS - 1 || undefined;
    });
    const uid = pod('forks')?.metadata?.uid ?? '';
    assert.equal(await cgroupFile(`kubepods/besteffort/pod${uid}`, 'pids.max'), String(PIDS));
    const machine = Math.min(
      ...(await Promise.all(
        ['pid_max', 'threads-max'].map(async (name) => Number(await readFile(`/proc/sys/kernel/${name}`, 'utf8'))),
      )),
    );
    const all = Number(await cgroupFile('kubepods', 'pids.max'));
    assert.ok(all >= machine / 2 && all <= machine - 1_024, `${all} of ${machine}`);
    api.remove(resources.pods, 'default/forks');
  });

  it('limits of each pod apply to a log whose rotation was interrupted', async () => {
    create('writer', 'i=0; while :; do echo $i; i=$((i+1)); sleep 0.02; done');
    await running('writer');
    const found = (await lab.runtime().listContainers()).find(
      ({ labels, state }) => labels['io.kubernetes.pod.name'] === 'writer' && state === 'running',
    );
    const log = found?.logPath ?? '';
    const sizeOf = (path: string): Promise<number> =>
      stat(path).then(
        ({ size }) => size,
        () => 0,
      );
    await rm(join(log, '..'), { recursive: true });
    await eventually('the log is written again', async () => (await sizeOf(log)) > 0 || undefined);
    // The next kubelet finds a log that an earlier one renamed without reopening.
    await lab.halt();
    const rotated = `${log}.20200101000000001`;
    await rename(log, rotated);
    await lab.boot(api.access());
    await eventually('the log is written again', async () => (await sizeOf(log)) > 0 || undefined);
    const size = await sizeOf(rotated);
    const { body } = await lab.get('/containerLogs/default/writer/main');
    const numbers = body.trim().split('\n').map(Number);
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => (numbers[0] ?? 0) + index),
    );
    assert.equal(await sizeOf(rotated), size, 'the rotated log is complete');
    api.remove(resources.pods, 'default/writer');
  });

  it('limits of each pod apply to the rate and the size of its log', async () => {
    create('flood', 'yes a-line-of-a-log-that-nobody-will-ever-read');
    await running('flood');
    const container = (await lab.runtime().listContainers()).find(
      ({ labels, state }) => labels['io.kubernetes.pod.name'] === 'flood' && state === 'running',
    );
    assert.ok(container !== undefined);
    const monitor = /^PPid:\s+(\d+)/m.exec(await readFile(`/proc/${container.pid}/status`, 'utf8'))?.[1];
    const written = async (): Promise<number> =>
      Number(/^wchar: (\d+)/m.exec(await readFile(`/proc/${monitor}/io`, 'utf8'))?.[1]);
    const directory = join(container.logPath, '..');
    const sizes = async (): Promise<number[]> =>
      Promise.all((await readdir(directory)).map(async (name) => (await stat(join(directory, name))).size));
    const limit = DEFAULT_KUBELET_CONFIG.containerLogMaxBytes + 16 * MIB;
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const [before, sinceMs] = [await written(), performance.now()];
    let largest = 0;
    while (performance.now() - sinceMs < 9_000) {
      for (const size of await sizes().catch(() => [])) largest = Math.max(largest, size);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const rate = ((await written()) - before) / ((performance.now() - sinceMs) / 1000);
    assert.ok(rate > MIB / 2 && rate < 16 * MIB, `${Math.round(rate / MIB)} MiB a second`);
    assert.ok(largest <= limit, `a log of ${largest} bytes`);
    const total = (await sizes()).reduce((sum, size) => sum + size, 0);
    assert.ok(total <= DEFAULT_KUBELET_CONFIG.containerLogMaxFiles * limit, `${total} bytes of logs`);

    const deletedMs = performance.now();
    await api.client().resource(resources.pods).delete('flood', 'default', { gracePeriodSeconds: 1 });
    await eventually('the pod is deleted', () => pod('flood') === undefined || undefined);
    assert.ok(performance.now() - deletedMs < 8_000);
  });
});
