/** Node pressure with real containers: selection of the evicted pod, its remaining data and admission of new pods. */
import assert from 'node:assert/strict';
import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Pod, PodSpec } from '../../../src/api/generated/core/v1.ts';
import { setPodDefaults } from '../../../src/api/podspec/defaults.ts';
import { resources } from '../../../src/api/resources.ts';
import type { Threshold } from '../../../src/kubelet/core/eviction/thresholds.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

const MEMORY: Threshold = { signal: 'memory.available', value: { quantity: 2 ** 50 } };
const DISK: Threshold = { signal: 'nodefs.available', value: { fraction: 0.999999 } };

describe('pods under node pressure', { timeout: 120_000 }, () => {
  let lab: KubeletLab;
  const api = new MemoryApi();
  const thresholds: Threshold[] = [];
  const container = (script: string, memory?: string) => ({
    name: 'main',
    image: IMAGE,
    command: ['/bin/sh', '-c', script],
    ...(memory === undefined ? {} : { resources: { requests: { memory } } }),
    volumeMounts: [{ name: 'data', mountPath: '/data' }],
  });
  const specOf = (script: string, memory?: string): PodSpec => ({
    nodeName: NODE,
    terminationGracePeriodSeconds: 1,
    containers: [container(script, memory)],
    volumes: [{ name: 'data', emptyDir: {} }],
  });
  const create = (name: string, spec: PodSpec): void => {
    const pod: Pod = { metadata: { name, namespace: 'default' }, spec, status: { phase: 'Pending' } };
    setPodDefaults(pod);
    api.put(resources.pods, pod);
  };
  const until = (name: string, what: string, holds: (pod: Pod) => boolean): Promise<Pod> =>
    eventually(`${name} ${what}`, () => {
      const found = api.get(resources.pods, `default/${name}`);
      return found !== undefined && holds(found) ? found : undefined;
    });
  const ready = (name: string): Promise<Pod> =>
    until(name, 'ready', ({ status }) => status?.containerStatuses?.[0]?.ready === true);
  const ended = (name: string): Promise<Pod> => until(name, 'ended', ({ status }) => status?.phase === 'Failed');
  const exists = (path: string): Promise<boolean> =>
    access(path).then(
      () => true,
      () => false,
    );
  const conditions = (): string =>
    (api.get(resources.nodes, NODE)?.status?.conditions ?? [])
      .filter(({ status }) => status === 'True')
      .map(({ type }) => type)
      .join();

  before(async () => {
    lab = await createKubeletLab({
      eviction: { thresholds, pressureTransitionMs: 2_000, maxPodGraceSeconds: 0 },
      evictionMonitoringMs: 200,
    });
    const keeper = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'keeper' }, spec: specOf('sleep 1000') };
    await writeFile(join(lab.manifests, 'keeper.yaml'), JSON.stringify(keeper));
    await lab.boot(api.access());
    await lab.kubelet().nodeReady;
  });
  after(() => lab?.cleanUp());

  it('evicts the pod that exceeds its requests, releases its resources and rejects similar pods', async () => {
    const script = 'head -c 1000000 /dev/zero >/data/big; echo written; sleep 1000';
    create('modest', specOf(script, '64Mi'));
    create('hog', specOf(script));
    const hog = await ready('hog');
    await ready('modest');
    const uid = hog.metadata?.uid ?? '';
    const volumes = join(lab.directory, 'volumes/pods', uid, 'volumes');
    const log = join(lab.directory, 'logs/pods', `default_hog_${uid}`);
    assert.ok((await exists(volumes)) && (await exists(log)));
    thresholds.push(MEMORY);
    const evicted = await ended('hog');
    thresholds.length = 0;
    assert.equal(evicted.status?.reason, 'Evicted');
    assert.match(
      evicted.status?.message ?? '',
      /^The node was low on resource: memory\. Threshold quantity: 1Pi, available: /,
    );
    const target = evicted.status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
    assert.deepEqual([target?.status, target?.reason], ['True', 'TerminationByKubelet']);
    assert.ok(api.events.some(({ reason, object }) => reason === 'Evicted' && object.includes('hog')));
    await eventually('its resources are released', async () =>
      (await exists(volumes)) || (await exists(log)) ? undefined : true,
    );
    const held = await lab.runtime().listContainers();
    assert.ok(held.every(({ labels }) => labels['io.kubernetes.pod.uid'] !== uid));
    const last = await until(
      'hog',
      'reported',
      ({ status }) => status?.containerStatuses?.[0]?.state?.terminated !== undefined,
    );
    assert.equal(last.status?.phase, 'Failed');

    assert.equal(conditions(), 'MemoryPressure,Ready');
    create('besteffort', specOf('sleep 1000'));
    create('burstable', specOf('sleep 1000', '1Mi'));
    const refused = await ended('besteffort');
    assert.equal(refused.status?.reason, 'Evicted');
    assert.equal(refused.status?.message, 'Pod was rejected: The node had condition: [MemoryPressure]. ');
    await ready('burstable');
    assert.equal(api.get(resources.pods, 'default/modest')?.status?.phase, 'Running');
    await eventually('the condition ends', () => (conditions() === 'Ready' ? true : undefined));
  });

  it('evicts all pods except static and critical pods, and removes volumes of completed pods', async () => {
    create('done', { ...specOf('head -c 1000000 /dev/zero >/data/big'), restartPolicy: 'Never' });
    create('critical', { ...specOf('sleep 1000'), priority: 2_000_000_000 });
    const done = await until('done', 'done', ({ status }) => status?.phase === 'Succeeded');
    await ready('critical');
    const volumes = join(lab.directory, 'volumes/pods', done.metadata?.uid ?? '', 'volumes');
    await eventually('volumes of the ended pod', async () => ((await exists(volumes)) ? undefined : true));
    thresholds.push(DISK);
    const first = await ended('modest');
    await ended('burstable');
    assert.match(first.status?.message ?? '', /^The node was low on resource: ephemeral-storage\. /);
    assert.match(
      first.status?.message ?? '',
      /Container main was using \S+, request is 0, has larger consumption of ephemeral-storage\. $/,
    );
    await eventually('nothing is left to evict', () =>
      lab.logLines.some((line) => line.includes('no pod left to evict')) ? true : undefined,
    );
    create('late', specOf('sleep 1000', '1Mi'));
    assert.equal((await ended('late')).status?.message, 'Pod was rejected: The node had condition: [DiskPressure]. ');
    thresholds.length = 0;
    assert.equal(api.get(resources.pods, 'default/critical')?.status?.phase, 'Running');
    const running = (await lab.runtime().listContainers()).filter(({ state }) => state === 'running');
    assert.deepEqual(running.map(({ labels }) => labels['io.kubernetes.pod.name']).sort(), [
      'critical',
      `keeper-${NODE}`,
    ]);
  });
});
