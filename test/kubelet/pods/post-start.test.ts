/** A container counts as started when its postStart hook has returned. */
import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Container, ContainerStatus, Pod } from '../../../src/api/generated/core/v1.ts';
import { setPodDefaults } from '../../../src/api/podspec/defaults.ts';
import { resources } from '../../../src/api/resources.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

describe('postStart hooks', { timeout: 60_000 }, () => {
  let lab: KubeletLab;
  const api = new MemoryApi();
  const shared = (): string => join(lab.directory, 'shared');
  const shell = (script: string): string[] => ['/bin/sh', '-c', script];
  const probe = (name: string) => ({ exec: { command: ['touch', `/shared/${name}`] }, periodSeconds: 1 });
  const container = (name: string, more: Partial<Container>): Container => ({
    name,
    image: IMAGE,
    imagePullPolicy: 'IfNotPresent',
    command: shell(`trap 'exit 0' TERM; touch /shared/${name}; sleep 1000 & wait`),
    volumeMounts: [{ name: 'shared', mountPath: '/shared' }],
    ...more,
  });
  const create = (name: string, containers: Container[]): void => {
    const pod: Pod = {
      metadata: { name, namespace: 'default' },
      spec: {
        nodeName: NODE,
        terminationGracePeriodSeconds: 1,
        volumes: [{ name: 'shared', hostPath: { path: shared() } }],
        containers,
      },
      status: { phase: 'Pending' },
    };
    setPodDefaults(pod);
    api.put(resources.pods, pod);
  };
  const pod = (name: string): Pod | undefined => api.get(resources.pods, `default/${name}`);
  const status = (name: string): ContainerStatus | undefined => pod(name)?.status?.containerStatuses?.[0];
  const file = (name: string): Promise<unknown> =>
    eventually(name, async () => (await readdir(shared())).includes(name) || undefined);

  before(async () => {
    lab = await createKubeletLab();
    await mkdir(shared());
    await lab.boot(api.access());
    await lab.kubelet().nodeReady;
  });
  after(() => lab?.cleanUp());

  it('keeps the container waiting and unprobed until the hook returns', async () => {
    const hook = { exec: { command: shell('touch /shared/hook; while [ ! -e /shared/go ]; do sleep 0.1; done') } };
    const first = container('first', {
      lifecycle: { postStart: hook },
      livenessProbe: probe('live'),
      readinessProbe: probe('ready'),
    });
    create('hooked', [first, container('second', {})]);
    await file('hook');
    await sleep(1_500);
    assert.deepEqual(status('hooked')?.state, { waiting: { reason: 'ContainerCreating' } });
    assert.equal(status('hooked')?.started, false);
    assert.equal(status('hooked')?.ready, false);
    assert.equal(pod('hooked')?.status?.phase, 'Pending');
    assert.deepEqual((await readdir(shared())).sort(), ['first', 'hook']);
    await writeFile(join(shared(), 'go'), '');
    await eventually('ready', () => status('hooked')?.ready === true || undefined);
    assert.ok(status('hooked')?.state?.running !== undefined);
    await eventually('phase', () => pod('hooked')?.status?.phase === 'Running' || undefined);
    for (const name of ['live', 'ready', 'second']) await file(name);
  });

  it('reports the former run of a restarted container until the hook of the next run returns', async () => {
    const hook = { exec: { command: shell('[ ! -e /shared/again ] || sleep 1000') } };
    create('again', [
      container('again-main', {
        command: shell('[ -e /shared/again ] && sleep 1000; sleep 1; touch /shared/again; exit 3'),
        lifecycle: { postStart: hook },
      }),
    ]);
    await file('again');
    const uid = pod('again')?.metadata?.uid;
    await eventually('second run', async () =>
      (await lab.runtime().listContainers()).find(
        (each) => each.labels['io.kubernetes.pod.uid'] === uid && each.attempt === 1 && each.state === 'running',
      ),
    );
    await sleep(500);
    assert.equal(status('again')?.state?.terminated?.exitCode, 3);
    assert.equal(status('again')?.ready, false);
    assert.equal(pod('again')?.status?.phase, 'Running');
    const client = api.client().resource(resources.pods);
    await client.delete('again', 'default', { gracePeriodSeconds: 1 });
    await eventually('deleted', () => pod('again') === undefined || undefined, 5_000);
  });
});
