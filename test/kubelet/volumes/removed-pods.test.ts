/** Volumes of pods that their source removed without a graceful deletion. Uses real loop devices. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { setPodDefaults } from '../../../src/api/podspec/defaults.ts';
import { resources } from '../../../src/api/resources.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

const run = promisify(execFile);

describe('volumes of removed pods', { timeout: 120_000 }, () => {
  let lab: KubeletLab;
  const api = new MemoryApi();
  const fileOf = (name: string): string => join(lab.directory, `${name}.img`);

  before(async () => {
    lab = await createKubeletLab();
    await lab.boot(api.access());
    await lab.kubelet().nodeReady;
  });
  after(async () => {
    await lab?.cleanUp();
  });

  const devices = async (name: string): Promise<string> => {
    const { stdout } = await run('losetup', ['--associated', fileOf(name), '--noheadings', '--output', 'NAME']);
    return stdout.trim();
  };

  /** Starts a pod whose claim is bound to a file that is used as a block device. */
  async function start(name: string): Promise<void> {
    await writeFile(fileOf(name), '');
    await truncate(fileOf(name), 1 << 20);
    const claimRef = { namespace: 'default', name, uid: `claim-${name}` };
    api.put(resources.persistentVolumes, {
      metadata: { name },
      spec: {
        ...{ capacity: { storage: '1Mi' }, accessModes: ['ReadWriteOnce'], volumeMode: 'Block', claimRef },
        local: { path: fileOf(name) },
      },
      status: { phase: 'Bound' },
    });
    api.put(resources.persistentVolumeClaims, {
      metadata: {
        ...{ name, namespace: 'default', uid: `claim-${name}` },
        annotations: { 'pv.kubernetes.io/bind-completed': 'yes' },
      },
      spec: { volumeName: name, volumeMode: 'Block', accessModes: ['ReadWriteOnce'] },
      status: { phase: 'Bound' },
    });
    const pod: Pod = {
      metadata: { name, namespace: 'default' },
      spec: {
        ...{ nodeName: NODE, terminationGracePeriodSeconds: 1 },
        volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: name } }],
        containers: [
          {
            ...{ name: 'main', image: IMAGE, command: ['/bin/sh', '-c', 'sleep 1000'] },
            volumeDevices: [{ name: 'disk', devicePath: '/dev/disk' }],
          },
        ],
      },
      status: { phase: 'Pending' },
    };
    setPodDefaults(pod);
    api.put(resources.pods, pod);
    await eventually(`${name} runs`, () => api.get(resources.pods, `default/${name}`)?.status?.phase === 'Running');
    assert.match(await devices(name), /^\/dev\/loop\d+$/);
  }

  const isEnded = async (uid: string): Promise<boolean> =>
    (await lab.runtime().listPodSandboxes()).every((sandbox) => sandbox.uid !== uid);

  it('releases the volume of a pod that was deleted without a grace period', async () => {
    await start('forced');
    const uid = api.get(resources.pods, 'default/forced')?.metadata?.uid ?? '';
    api.remove(resources.pods, 'default/forced');
    await eventually('the pod ends', () => isEnded(uid));
    await eventually('the device is detached', async () => (await devices('forced')) === '', 5000);
  });

  it('releases the volume of a pod that was deleted while the kubelet was stopped', async () => {
    await start('orphan');
    const uid = api.get(resources.pods, 'default/orphan')?.metadata?.uid ?? '';
    await lab.halt();
    api.remove(resources.pods, 'default/orphan');
    await lab.boot(api.access());
    await eventually('the pod ends', () => isEnded(uid));
    await eventually('the device is detached', async () => (await devices('orphan')) === '', 5000);
  });
});
