/**
 * Pods with `hostUsers: false`, end to end: ID ranges are distinct, survive a restart of the kubelet and are released
 * after the pod.
 */
import assert from 'node:assert/strict';
import { chmod, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Node, Pod } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import { createKubeletFiles } from '../../../src/kubelet/io/files/index.ts';
import { createMounter } from '../../../src/kubelet/io/host-facts/index.ts';
import { UserNamespaces } from '../../../src/kubelet/pods/containers/user-namespaces.ts';
import { PodDirectories } from '../../../src/kubelet/pods/directories.ts';
import { trees } from '../../../src/runtime/directory-removal/index.ts';
import { whyNoUserNamespaces } from '../../../src/runtime/oci/spec/user-namespace.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

const why = await whyNoUserNamespaces();

describe('pods with hostUsers: false', { timeout: 90_000, skip: why ?? false }, () => {
  const api = new MemoryApi();
  let lab: KubeletLab;
  const pod = (name: string): Pod | undefined => api.get(resources.pods, `default/${name}`);
  const put = (name: string): Pod =>
    api.put(resources.pods, {
      metadata: { name, namespace: 'default', uid: `uid-${name}` },
      spec: {
        nodeName: NODE,
        hostUsers: false,
        terminationGracePeriodSeconds: 1,
        volumes: [
          { name: 'scratch', emptyDir: {} },
          { name: 'config', configMap: { name: 'settings' } },
        ],
        containers: [
          {
            name: 'main',
            image: IMAGE,
            imagePullPolicy: 'IfNotPresent',
            command: ['/bin/sh', '-c', 'echo mine > /scratch/file && cat /config/key && sleep 1000'],
            volumeMounts: [
              { name: 'scratch', mountPath: '/scratch' },
              { name: 'config', mountPath: '/config' },
            ],
          },
        ],
      },
      status: { phase: 'Pending' },
    });
  const running = (name: string): Promise<Pod> =>
    eventually(
      `${name} runs`,
      () => (pod(name)?.status?.containerStatuses?.[0]?.state?.running === undefined ? undefined : pod(name)),
      20_000,
    );
  const range = async (name: string): Promise<string> => {
    const id = pod(name)?.status?.containerStatuses?.[0]?.containerID?.replace(/^.*\/\//, '');
    const found = (await lab.runtime().listContainers()).find((each) => each.id === id);
    return (await readFile(`/proc/${found?.pid}/uid_map`, 'utf8')).trim().replaceAll(/\s+/g, ' ');
  };

  before(async () => {
    lab = await createKubeletLab();
    await chmod(lab.directory, 0o711);
    api.put(resources.configMaps, { metadata: { name: 'settings', namespace: 'default' }, data: { key: 'v' } });
    for (const name of ['one', 'two']) put(name);
    await lab.boot(api.access());
  });
  after(() => lab?.cleanUp());

  it('pods with hostUsers: false have separate UID ranges, and the node reports support for user namespaces', async () => {
    await running('one');
    await running('two');
    const ranges = [await range('one'), await range('two')].sort();
    assert.deepEqual(ranges, ['0 131072 65536', '0 65536 65536']);
    const node = await eventually('node', () => api.get(resources.nodes, NODE) as Node | undefined);
    const [handler] = (node.status as { runtimeHandlers: { features: { userNamespaces: boolean } }[] }).runtimeHandlers;
    assert.equal(handler?.features.userNamespaces, true);
  });

  it('pods with hostUsers: false keep their exclusive UID range when the kubelet restarts', async () => {
    const before = [await range('one'), await range('two')];
    await lab.halt();
    await lab.boot(api.access());
    put('three');
    await running('three');
    assert.deepEqual([await range('one'), await range('two')], before);
    assert.equal(await range('three'), '0 196608 65536');
    const file = JSON.parse(await readFile(join(lab.directory, 'volumes/pods/uid-three/userns'), 'utf8'));
    assert.deepEqual(file.uidMappings, [{ hostId: 196_608, containerId: 0, length: 65_536 }]);
  });

  it('pods with hostUsers: false release their UID range when they end', async () => {
    const one = pod('one');
    const was = await range('one');
    api.put(resources.pods, {
      ...one,
      metadata: { ...one?.metadata, deletionTimestamp: new Date().toISOString(), deletionGracePeriodSeconds: 1 },
    } as Pod);
    await eventually('one object is deleted', () => pod('one') === undefined || undefined);
    put('four');
    await running('four');
    assert.equal(await range('four'), was);
  });
});

it('rejects a runtime handler without user namespaces with upstream’s message', async () => {
  const namespaces = new UserNamespaces(
    { config: { maxPods: 1 } as never, files: createKubeletFiles(createMounter()), trees, log: silentLog },
    new PodDirectories({ volumes: '/nowhere' } as never, trees),
    { recursiveReadOnlyMounts: false, selinux: false, handlers: [{ name: '', recursiveReadOnlyMounts: false }] },
  );
  const pod: Pod = { metadata: { uid: 'u' }, spec: { containers: [], hostUsers: false } as never };
  await assert.rejects(namespaces.mappingOf(pod), {
    message: 'RuntimeClass handler "" does not support user namespaces',
  });
  assert.equal(await namespaces.mappingOf({ spec: { containers: [] } }), undefined);
});
