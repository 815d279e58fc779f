/** The kubelet on Debian's containerd: a pod with volumes, log, commands, restarts and termination. */
import assert from 'node:assert/strict';
import { after, before, describe, it, test } from 'node:test';
import type { Node, Pod } from '../../src/api/generated/core/v1.ts';
import { resources } from '../../src/api/resources.ts';
import { createContainerdLab, whyNoContainerd } from '../runtime/cri/containerd.ts';
import { inOwnNetworkNamespace } from '../runtime/oci/netns.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from './lab.ts';
import { MemoryApi } from './memory-api.ts';

const why = whyNoContainerd();
if (why !== undefined) test('the kubelet on containerd', { skip: why }, () => {});
else
  inOwnNetworkNamespace(import.meta.url, () => {
    describe('the kubelet on containerd', { timeout: 200_000 }, () => {
      const api = new MemoryApi();
      let lab: KubeletLab;
      let containerd: Awaited<ReturnType<typeof createContainerdLab>>;
      const pod = (name: string): Pod | undefined => api.get(resources.pods, `default/${name}`);
      const state = (name: string) => pod(name)?.status?.containerStatuses?.[0];

      before(async () => {
        containerd = await createContainerdLab();
        lab = await createKubeletLab({}, undefined, containerd.runtime());
        api.put(resources.configMaps, { metadata: { name: 'settings', namespace: 'default' }, data: { key: 'value' } });
        api.put(resources.pods, {
          metadata: { name: 'web', namespace: 'default', uid: 'uid-web' },
          spec: {
            nodeName: NODE,
            terminationGracePeriodSeconds: 1,
            volumes: [{ name: 'config', configMap: { name: 'settings' } }],
            containers: [
              {
                name: 'main',
                image: IMAGE,
                imagePullPolicy: 'IfNotPresent',
                command: ['/bin/sh', '-c', 'cat /config/key; echo; while [ ! -e /end ]; do sleep 0.2; done; exit 3'],
                volumeMounts: [{ name: 'config', mountPath: '/config' }],
              },
            ],
          },
          status: { phase: 'Pending' },
        });
        await lab.boot(api.access());
      });
      after(async () => {
        await lab?.cleanUp();
        await containerd?.cleanUp();
      });

      it('runs a pod with its volume and address, and reports its log', async () => {
        await eventually('running', () => state('web')?.state?.running, 60_000);
        assert.match(pod('web')?.status?.podIP ?? '', /^10\.131\.7\.\d+$/);
        assert.match(state('web')?.containerID ?? '', /^containerd:\/\//);
        const log = await eventually('log', async () => {
          const { body } = await lab.get('/containerLogs/default/web/main');
          return body.includes('value') ? body : undefined;
        });
        assert.match(log, /^value\n/);
        const node = await eventually('node', () => api.get(resources.nodes, NODE) as Node | undefined);
        assert.match(node.status?.nodeInfo?.containerRuntimeVersion ?? '', /^containerd:\/\/1\./);
      });

      it('runs commands and restarts terminated containers', async () => {
        const run = await lab.get('/run/default/web/main?cmd=touch%20/end', 'admin', 'POST');
        assert.equal(run.code, 200, run.body);
        const again = await eventually(
          'restarted',
          () => (state('web')?.restartCount === 1 ? state('web') : undefined),
          60_000,
        );
        assert.equal(again.lastState?.terminated?.exitCode, 3);
      });

      it('terminates a deleted pod and removes its containers, files and network', async () => {
        await api.client().resource(resources.pods).delete('web', 'default', { gracePeriodSeconds: 1 });
        await eventually('gone', () => pod('web') === undefined || undefined, 60_000);
        await eventually(
          'forgotten',
          async () => (await containerd.runtime().listContainers()).length === 0 || undefined,
        );
      });
    });
  });
