/** Pods with a final phase, and pods whose runtime records were lost in a power failure. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Container, Pod, PodSpec } from '../../../src/api/generated/core/v1.ts';
import { setPodDefaults } from '../../../src/api/podspec/defaults.ts';
import { resources } from '../../../src/api/resources.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

describe('pods after the runtime lost its records', { timeout: 120_000 }, () => {
  let lab: KubeletLab;
  const api = new MemoryApi();
  const runs = (): string => join(lab.directory, 'runs');
  const container = (name: string, script: string): Container => ({
    name,
    image: IMAGE,
    imagePullPolicy: 'IfNotPresent',
    command: ['/bin/sh', '-c', `echo ran >>/runs/$POD.${name}; ${script}`],
    volumeMounts: [{ name: 'runs', mountPath: '/runs' }],
  });
  const create = (name: string, spec: Partial<PodSpec>): void => {
    const containers = spec.containers ?? [container('main', 'sleep 1000')];
    const pod: Pod = {
      metadata: { name, namespace: 'default' },
      spec: {
        nodeName: NODE,
        terminationGracePeriodSeconds: 0,
        volumes: [{ name: 'runs', hostPath: { path: runs() } }],
        ...spec,
        containers: containers.map((each) => ({ ...each, env: [{ name: 'POD', value: name }] })),
      },
      status: { phase: 'Pending' },
    };
    setPodDefaults(pod);
    api.put(resources.pods, pod);
  };
  const pod = (name: string): Pod | undefined => api.get(resources.pods, `default/${name}`);
  const when = (name: string, title: string, test: (pod: Pod) => boolean): Promise<Pod> =>
    eventually(`${name}: ${title}`, () => {
      const found = pod(name);
      return found !== undefined && test(found) ? found : undefined;
    });
  const runsOf = async (name: string): Promise<string> => readFile(join(runs(), name), 'utf8').catch(() => '');
  const running = async (name: string): Promise<number> => {
    const uid = pod(name)?.metadata?.uid;
    const all = await lab.runtime().listContainers();
    return all.filter((each) => each.labels['io.kubernetes.pod.uid'] === uid && each.state === 'running').length;
  };
  const isReady = ({ status }: Pod): boolean => status?.containerStatuses?.[0]?.ready === true;

  before(async () => {
    lab = await createKubeletLab();
    await mkdir(runs());
    await lab.boot(api.access());
    await lab.kubelet().nodeReady;
  });
  after(() => lab?.cleanUp());

  it('pods of the API terminate when the API sets a final phase', async () => {
    create('failed', {});
    await when('failed', 'runs', isReady);
    const found = pod('failed');
    assert.ok(found !== undefined);
    api.put(resources.pods, { ...found, status: { ...found.status, phase: 'Failed', reason: 'NodeLost' } });
    await eventually('its container ends', async () => ((await running('failed')) === 0 ? true : undefined));
    const over = await when(
      'failed',
      'reports the end',
      ({ status }) => status?.containerStatuses?.[0]?.state?.terminated !== undefined,
    );
    assert.equal(over.status?.phase, 'Failed');
    assert.equal(over.status?.reason, 'NodeLost');
    assert.equal(await runsOf('failed.main'), 'ran\n');
  });

  it('pods of the API run once with restartPolicy Never when the runtime has lost its records', async () => {
    create('once', { restartPolicy: 'Never' });
    create('some', {
      restartPolicy: 'OnFailure',
      containers: [container('done', 'true'), container('main', 'sleep 1000')],
    });
    create('always', { restartPolicy: 'Always' });
    for (const name of ['once', 'always']) await when(name, 'runs', isReady);
    await when('some', 'has one container that is done', ({ status }) => {
      const [done, main] = status?.containerStatuses ?? [];
      return done?.state?.terminated?.exitCode === 0 && main?.ready === true;
    });
    await lab.halt();
    await lab.loseRunningState();
    for (const kind of ['sandboxes', 'containers']) {
      const directory = join(lab.directory, 'state', kind);
      for (const id of await readdir(directory)) await writeFile(join(directory, id, 'record.json'), '');
    }
    await lab.boot(api.access());

    const once = await when('once', 'fails', ({ status }) => status?.phase === 'Failed');
    assert.equal(once.status?.containerStatuses?.[0]?.state?.terminated?.reason, 'ContainerStatusUnknown');
    assert.equal(once.status?.containerStatuses?.[0]?.restartCount, 0);
    for (const name of ['always', 'some'])
      await when(name, 'runs again', ({ status }) => {
        const main = status?.containerStatuses?.find((each) => each.name === 'main');
        return main?.ready === true && main.restartCount === 1;
      });
    // A container without a readiness probe is ready before its command has written.
    for (const name of ['always', 'some'])
      await eventually(`${name} has run twice`, async () =>
        (await runsOf(`${name}.main`)) === 'ran\nran\n' ? true : undefined,
      );
    assert.equal(await runsOf('some.done'), 'ran\n');
    assert.equal(await runsOf('once.main'), 'ran\n');
    assert.equal(await running('once'), 0);
  });
});
