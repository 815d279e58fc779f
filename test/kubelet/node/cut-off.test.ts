/** A host that rebooted while no API server is reachable. The pods are real; the API is in memory and unreachable. */
import assert from 'node:assert/strict';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Pod, PodSpec } from '../../../src/api/generated/core/v1.ts';
import { setPodDefaults } from '../../../src/api/podspec/defaults.ts';
import { resources } from '../../../src/api/resources.ts';
import { toNodeName } from '../../../src/base/brand.ts';
import { createLog } from '../../../src/base/log.ts';
import { createLastKnown, type LastKnown } from '../../../src/client/index.ts';
import { createSealedFiles } from '../../../src/host/process/sealed-files/sealed-files.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE, realClock } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

describe('a disconnected host', { timeout: 120_000 }, () => {
  let lab: KubeletLab;
  const api = new MemoryApi();
  const lines: string[] = [];
  const log = createLog({ component: 'l', level: 2, sink: { write: (line) => lines.push(line) }, nowMs: Date.now });
  const open = (): LastKnown =>
    createLastKnown({
      clock: realClock,
      log,
      files: createSealedFiles({
        directory: join(lab.directory, 'last-known'),
        keyFile: join(lab.directory, 'keys/last-known.key'),
        nodeName: toNodeName(NODE),
      }),
    });
  let lastKnown: LastKnown;

  const create = (name: string, script: string, more: Partial<PodSpec> = {}): Pod => {
    const pod: Pod = {
      metadata: { name, namespace: 'default', labels: { app: name } },
      spec: {
        nodeName: toNodeName(NODE),
        terminationGracePeriodSeconds: 0,
        containers: [{ name: 'main', image: IMAGE, imagePullPolicy: 'Always', command: ['/bin/sh', '-c', script] }],
        ...more,
      },
      status: { phase: 'Pending' },
    };
    setPodDefaults(pod);
    return api.put(resources.pods, pod);
  };
  const pod = (name: string): Pod | undefined => api.get(resources.pods, `default/${name}`);
  const running = async (uid: string): Promise<true | undefined> => {
    const all = await lab.runtime().listContainers();
    return all.some((each) => each.labels['io.kubernetes.pod.uid'] === uid && each.state === 'running')
      ? true
      : undefined;
  };
  const isReady = (name: string) => () => pod(name)?.status?.containerStatuses?.[0]?.ready === true || undefined;
  const volume = (uid: string, path: string): Promise<string> =>
    readFile(join(lab.directory, 'volumes/pods', uid, 'volumes', path), 'utf8');
  const secret = (value: string): void => {
    api.put(resources.secrets, {
      metadata: { name: 'keys', namespace: 'default' },
      data: { password: Buffer.from(value).toString('base64') },
    });
  };
  const uidOf = (name: string): string => pod(name)?.metadata?.uid ?? '';

  before(async () => {
    lab = await createKubeletLab();
    secret('first');
    api.put(resources.configMaps, { metadata: { name: 'settings', namespace: 'default' }, data: { COLOUR: 'blue' } });
    lastKnown = open();
    await lab.boot(api.access(lastKnown), lastKnown);
    await lab.kubelet().nodeReady;
  });
  after(() => lab?.cleanUp());

  it('a disconnected host runs its bound pods with their secrets, config maps and tokens', async () => {
    const projected = [{ serviceAccountToken: { path: 'token', expirationSeconds: 600 } }];
    create('keeper', 'sleep 1000', {
      containers: [
        {
          name: 'main',
          image: IMAGE,
          imagePullPolicy: 'IfNotPresent',
          command: ['/bin/sh', '-c', 'sleep 1000'],
          envFrom: [{ configMapRef: { name: 'settings' } }, { secretRef: { name: 'never-there', optional: true } }],
          volumeMounts: [
            { name: 'keys', mountPath: '/keys' },
            { name: 'tokens', mountPath: '/tokens' },
          ],
        },
      ],
      volumes: [
        { name: 'keys', secret: { secretName: 'keys' } },
        { name: 'tokens', projected: { sources: projected } },
      ],
    });
    for (const name of ['leaver', 'seen']) {
      create(name, 'sleep 1000', {
        containers: [{ name: 'main', image: IMAGE, imagePullPolicy: 'IfNotPresent', command: ['sleep', '1000'] }],
      });
    }
    create('done', 'exit 0', {
      restartPolicy: 'Never',
      containers: [{ name: 'main', image: IMAGE, imagePullPolicy: 'IfNotPresent', command: ['true'] }],
    });
    for (const name of ['keeper', 'leaver', 'seen']) await eventually(`${name} runs`, isReady(name));
    await eventually('the pod done has ended', () => pod('done')?.status?.phase === 'Succeeded' || undefined);
    const uids = Object.fromEntries(['keeper', 'leaver', 'seen', 'done'].map((name) => [name, uidOf(name)]));
    const token = await volume(uids['keeper'] ?? '', 'kubernetes.io~projected/tokens/token');
    await api.client().resource(resources.pods).delete('seen', 'default', { gracePeriodSeconds: 0 });
    await eventually('its deletion is seen', async () => ((await running(uids['seen'] ?? '')) ? undefined : true));
    await lastKnown.stop();
    await lab.halt();
    await lab.loseRunningState();

    api.down = true;
    api.remove(resources.pods, 'default/leaver');
    secret('second');
    const written = JSON.stringify(pod('keeper')?.status);
    lastKnown = open();
    await lab.boot(api.access(lastKnown), lastKnown);
    for (const name of ['keeper', 'leaver']) await eventually(`${name} runs again`, () => running(uids[name] ?? ''));
    assert.equal(await volume(uids['keeper'] ?? '', 'kubernetes.io~secret/keys/password'), 'first');
    assert.equal(await volume(uids['keeper'] ?? '', 'kubernetes.io~projected/tokens/token'), token);
    for (const name of ['seen', 'done']) assert.equal(await running(uids[name] ?? ''), undefined, name);
    assert.match(lab.logLines.join('\n'), /API server unreachable: running the last known pods.*pods="?2/);
    assert.equal(JSON.stringify(pod('keeper')?.status), written);

    api.down = false;
    await eventually('the pod that was deleted meanwhile ends', async () =>
      (await running(uids['leaver'] ?? '')) ? undefined : true,
    );
    await eventually(
      'the status is written',
      () => pod('keeper')?.status?.containerStatuses?.[0]?.restartCount === 1 || undefined,
    );
    await eventually('the changed secret arrives', async () =>
      (await volume(uids['keeper'] ?? '', 'kubernetes.io~secret/keys/password')) === 'second' ? true : undefined,
    );
    assert.equal(await running(uids['keeper'] ?? ''), true);
    await eventually(
      'the node is ready',
      () =>
        api
          .get(resources.nodes, NODE)
          ?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') || undefined,
    );
  });

  it('starts no pod from saved state that is encrypted with another key', async () => {
    const uid = uidOf('keeper');
    await lastKnown.stop();
    await lab.halt();
    await lab.loseRunningState();
    api.down = true;
    await rm(join(lab.directory, 'keys'), { recursive: true });
    lastKnown = open();
    lines.length = 0;
    await lab.boot(api.access(lastKnown), lastKnown);
    await eventually('the log line', () => lines.find((line) => /last known state ignored.*set="?pods/.test(line)));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    assert.equal(await running(uid), undefined);
    api.down = false;
    await eventually('the pod runs after the API server has restarted', () => running(uid));
    await eventually('leftovers of other processes are deleted', async () =>
      (await lab.runtime().listPodSandboxes()).some(({ name }) => name !== 'keeper' && name !== 'done')
        ? undefined
        : true,
    );
  });
});
