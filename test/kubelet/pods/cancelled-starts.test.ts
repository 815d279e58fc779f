/** Deletion of pods whose start hangs. */
import assert from 'node:assert/strict';
import { createServer, type Server, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { Pod, PodSpec } from '../../../src/api/generated/core/v1.ts';
import { setPodDefaults } from '../../../src/api/podspec/defaults.ts';
import { resources } from '../../../src/api/resources.ts';
import type { Runtime } from '../../../src/runtime/port.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

describe('deletion of pods that are being started', { timeout: 60_000 }, () => {
  let lab: KubeletLab;
  let registry: Server;
  const sockets: Socket[] = [];
  let requested = 0;
  let creating: string | undefined;
  const api = new MemoryApi();
  /** The embedded runtime, except that the creation of a container ends only when it is cancelled. */
  const runtime = new Proxy({} as Runtime, {
    get: (_, key: keyof Runtime) => {
      if (key === 'createContainer') return createContainer;
      const value: unknown = lab.runtime()[key];
      return typeof value === 'function' ? value.bind(lab.runtime()) : value;
    },
  });
  const createContainer: Runtime['createContainer'] = (sandbox, _config, signal) => {
    creating = sandbox;
    return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('cancelled'))));
  };
  const create = (name: string, spec: Partial<PodSpec>): void => {
    const pod: Pod = {
      metadata: { name, namespace: 'default' },
      spec: { nodeName: NODE, containers: [{ name: 'main', image: IMAGE, imagePullPolicy: 'Never' }], ...spec },
      status: { phase: 'Pending' },
    };
    setPodDefaults(pod);
    api.put(resources.pods, pod);
  };
  const assertDeleted = async (name: string): Promise<void> => {
    await api.client().resource(resources.pods).delete(name, 'default', { gracePeriodSeconds: 1 });
    await eventually('deleted', () => api.get(resources.pods, `default/${name}`) === undefined || undefined, 5_000);
    assert.deepEqual(
      (await lab.runtime().listPodSandboxes()).filter(({ state }) => state === 'ready'),
      [],
    );
  };

  before(async () => {
    registry = createServer((socket) => {
      requested += 1;
      sockets.push(socket.on('error', () => {}));
    });
    await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
    lab = await createKubeletLab({}, undefined, runtime);
    await lab.boot(api.access());
    await lab.kubelet().nodeReady;
  });
  after(async () => {
    registry.close();
    for (const socket of sockets) socket.destroy();
    await lab?.cleanUp();
  });

  it('cancels the creation of a container', async () => {
    create('created', {});
    await eventually('creation', () => creating);
    await assertDeleted('created');
  });

  const image = (): string => {
    const address = registry.address();
    return `127.0.0.1:${typeof address === 'object' ? address?.port : 0}/absent:1`;
  };
  it('ends the wait for the image of a container', async () => {
    requested = 0;
    create('pulled', { containers: [{ name: 'main', image: image() }] });
    await eventually('request', () => requested > 0 || undefined);
    await assertDeleted('pulled');
  });

  it('ends the wait for the image of a volume', async () => {
    requested = 0;
    create('mounted', { volumes: [{ name: 'files', image: { reference: `${image()}2` } }] });
    await eventually('request', () => requested > 0 || undefined);
    await assertDeleted('mounted');
  });
});
