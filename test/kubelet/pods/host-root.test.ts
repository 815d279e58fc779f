/** The reserved host-root image: rejections by the kubelet, independent of the API server's admission. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { setPodDefaults } from '../../../src/api/podspec/defaults.ts';
import { HOST_ROOT_ID, HOST_ROOT_IMAGE } from '../../../src/api/podspec/host-root-image.ts';
import { resources } from '../../../src/api/resources.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

const manifest = (name: string, image: string, uid = ''): string => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: kube-system, uid: "${uid}"}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: "${image}", imagePullPolicy: Never, command: [/bin/sleep, "1000"]}
`;

describe('the host-root image', { timeout: 90_000 }, () => {
  let lab: KubeletLab;
  let server: Server;
  let served = manifest('fetched', HOST_ROOT_IMAGE);
  const api = new MemoryApi();
  const containers = async (pod: string) =>
    (await lab.runtime().listContainers()).filter((each) => each.labels['io.kubernetes.pod.name'] === pod);
  const running = (pod: string) =>
    eventually(`${pod} runs`, async () => (await containers(pod)).find((each) => each.state === 'running'));
  const create = (name: string, image: string, more: Pod['metadata'] = {}): void => {
    const pod: Pod = {
      metadata: { name, namespace: 'default', ...more },
      spec: {
        nodeName: NODE,
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'main', image, imagePullPolicy: 'IfNotPresent', command: ['/bin/sleep', '1000'] }],
      },
      status: { phase: 'Pending' },
    };
    setPodDefaults(pod);
    api.put(resources.pods, pod);
  };
  const seen = (name: string): Pod | undefined => api.get(resources.pods, `default/${name}`);

  before(async () => {
    server = createServer((_, response) => response.end(served));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const manifestUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/pod.yaml`;
    lab = await createKubeletLab({ manifestUrl, fileCheckFrequencyMs: 200 });
    await writeFile(join(lab.manifests, 'own.yaml'), manifest('own', HOST_ROOT_IMAGE, 'own-uid'));
    await lab.boot(api.access());
  });
  after(async () => {
    await lab?.cleanUp();
    server?.close();
  });

  it('the host-root image is the read-only root of static pods from the manifest directory', async () => {
    const { pid } = await running(`own-${NODE}`);
    const mounts = (await readFile(`/proc/${pid}/mountinfo`, 'utf8')).trim().split('\n');
    const writable = mounts
      .filter((line) => line.split(' ')[5]?.startsWith('rw'))
      .map((line) => ({ point: line.split(' ')[4] ?? '', type: /.* - (\S+)/.exec(line)?.[1] ?? '' }));
    const fresh = new Set(['tmpfs', 'devpts', 'mqueue', 'proc']);
    const ofHost = writable.filter(({ point, type }) => !fresh.has(type) && point !== '/etc/hosts');
    assert.deepEqual(
      ofHost.map(({ point }) => point).filter((point) => point !== '/dev/termination-log'),
      [],
    );
    assert.ok(mounts.some((line) => / \/sys ro.* - sysfs /.test(line)));
  });

  it('the host-root image is rejected for API pods under every name, even if they claim to be static', async () => {
    const claims = { 'kubernetes.io/config.source': 'file', 'kubernetes.io/config.hash': 'x' };
    const images = [HOST_ROOT_IMAGE, `${HOST_ROOT_IMAGE}:latest`, `${HOST_ROOT_IMAGE}:other`, HOST_ROOT_ID];
    for (const [index, image] of images.entries()) create(`api-${index}`, image, { annotations: claims });
    for (const index of images.keys()) {
      const over = await eventually(`api-${index} is refused`, () =>
        seen(`api-${index}`)?.status?.phase === 'Failed' ? seen(`api-${index}`) : undefined,
      );
      assert.equal(over.status?.reason, 'HostRootImage');
      assert.match(over.status?.message ?? '', /^Pod was rejected: spec.containers\[0\].image: Forbidden: image/);
      assert.deepEqual(await containers(`api-${index}`), []);
    }
  });

  it('the host-root image is rejected when a running pod changes its image, and for ephemeral containers', async () => {
    create('honest', IMAGE);
    const first = await running('honest');
    const pod = structuredClone(seen('honest'));
    assert.ok(pod?.spec !== undefined);
    const spec = pod.spec;
    api.put(resources.pods, {
      ...pod,
      spec: {
        ...spec,
        containers: spec.containers.map((each) => ({ ...each, image: HOST_ROOT_IMAGE })),
        ephemeralContainers: [{ name: 'debug', image: HOST_ROOT_IMAGE, imagePullPolicy: 'IfNotPresent' }],
      },
    });
    const waiting = await eventually('both requests are rejected', () => {
      const { containerStatuses = [], ephemeralContainerStatuses = [] } = seen('honest')?.status ?? {};
      const found = [...containerStatuses, ...ephemeralContainerStatuses].flatMap((each) => each.state?.waiting ?? []);
      return found.length === 2 && found.every((each) => each.reason === 'CreateContainerConfigError')
        ? found
        : undefined;
    });
    for (const { message } of waiting) assert.match(message ?? '', /Forbidden: image .* is reserved for static pods/);
    assert.deepEqual(
      (await containers('honest')).filter((each) => each.id !== first.id),
      [],
    );
  });

  it('the host-root image is rejected for pods of the manifest URL, which cannot take the UID of a pod in the directory', async () => {
    await eventually('the refusal', () => lab.logLines.find((line) => /reserved for static pods/.test(line)));
    const own = await running(`own-${NODE}`);
    served = manifest('other', IMAGE, 'own-uid');
    await eventually('the refusal', () => lab.logLines.find((line) => /pod refused: its UID is in use/.test(line)));
    served = manifest('later', IMAGE);
    await running(`later-${NODE}`);
    assert.equal((await running(`own-${NODE}`)).id, own.id, 'nor end it');
    assert.deepEqual(await containers(`fetched-${NODE}`), []);
    assert.deepEqual(await containers(`other-${NODE}`), []);
  });
});
