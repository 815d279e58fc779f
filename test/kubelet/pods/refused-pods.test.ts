/**
 * Pods that a node must not run, from the API and from manifests: their reported reason, that no container starts, and
 * their deletion.
 */
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

const container = { name: 'main', image: IMAGE, imagePullPolicy: 'IfNotPresent', command: ['/bin/sleep', '1000'] };
const manifest = (name: string, spec: object): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'kube-system' },
    spec: { hostNetwork: true, containers: [container], ...spec },
  });

describe('pods that a node must not run', { timeout: 90_000 }, () => {
  const api = new MemoryApi();
  let lab: KubeletLab;
  const seen = (namespace: string, name: string, holds: (pod: Pod) => boolean): Promise<Pod> =>
    eventually(name, async () => {
      const pod = api.get(resources.pods, `${namespace}/${name}`);
      return pod !== undefined && holds(pod) ? pod : undefined;
    });
  const apiPod = (name: string, spec: object): Pod => ({
    metadata: { name, namespace: 'default', uid: `uid-${name}` },
    spec: { nodeName: NODE, terminationGracePeriodSeconds: 1, containers: [container], ...spec },
    status: { phase: 'Pending' },
  });

  before(async () => {
    lab = await createKubeletLab();
    await writeFile(join(lab.manifests, 'windows.yaml'), manifest('windows', { os: { name: 'windows' } }));
    await writeFile(
      join(lab.manifests, 'class.yaml'),
      manifest('class', { schedulingGroup: { podGroupName: 'gang' } }),
    );
    api.put(resources.pods, apiPod('users', { hostUsers: false, shareProcessNamespace: true }));
    await lab.boot(api.access());
  });
  after(() => lab?.cleanUp());

  it('pods that a node must not run fail when they require another operating system, also from a manifest', async () => {
    const mirror = await seen('kube-system', `windows-${NODE}`, (pod) => pod.status?.phase === 'Failed');
    assert.equal(mirror.status?.reason, 'PodOSNotSupported');
  });

  it('pods that a node must not run stay pending with the field path when they set an unsupported field', async () => {
    const blocked = (pod: Pod): boolean => pod.status?.reason === 'PodFieldNotSupported';
    const mirror = await seen('kube-system', `class-${NODE}`, blocked);
    assert.equal(mirror.status?.message, 'spec.schedulingGroup: not supported by this node; remove the field');
    const { status } = await seen('default', 'users', blocked);
    assert.equal(status?.phase, 'Pending');
    assert.equal(status?.containerStatuses?.[0]?.state?.waiting?.reason, 'Blocked');
    assert.deepEqual(await lab.runtime().listPodSandboxes(), []);
    assert.equal(lab.logLines.filter((line) => line.includes('pod not admitted')).length, 3);
  });

  it('pods that a node must not run are also refused after a restart of the kubelet, and terminate when deleted', async () => {
    await lab.halt();
    await lab.boot(api.access());
    await eventually('refused again', async () =>
      lab.logLines.filter((line) => line.includes('pod not admitted')).length >= 5 ? true : undefined,
    );
    assert.deepEqual(await lab.runtime().listPodSandboxes(), []);
    const pod = await seen('default', 'users', () => true);
    api.put(resources.pods, {
      ...pod,
      metadata: { ...pod.metadata, deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 1 },
    });
    await eventually(
      'the object is deleted',
      async () => api.get(resources.pods, 'default/users') === undefined || undefined,
    );
    await rm(join(lab.manifests, 'class.yaml'));
    await eventually(
      'its mirror is gone',
      async () => api.get(resources.pods, `kube-system/class-${NODE}`) === undefined || undefined,
    );
  });
});
