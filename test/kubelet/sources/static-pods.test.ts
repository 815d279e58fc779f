import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { resources } from '../../../src/api/resources.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

const manifest = (name: string, script: string, extra = ''): string => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: kube-system, labels: {component: ${name}}}
spec:
  hostNetwork: true
  priorityClassName: system-node-critical
  terminationGracePeriodSeconds: 1
${extra}
  containers:
  - name: main
    image: ${IMAGE}
    imagePullPolicy: IfNotPresent
    command: ["/bin/sh", "-c", ${JSON.stringify(script)}]
    resources: {requests: {cpu: 50m, memory: 16Mi}, limits: {memory: 32Mi}}
`;

describe('static pods', { timeout: 90_000 }, () => {
  let lab: KubeletLab;
  const running = (name: string) =>
    eventually(`${name} runs`, async () =>
      (await lab.runtime().listContainers()).find(
        (each) => each.state === 'running' && each.labels['io.kubernetes.pod.name'] === `${name}-${NODE}`,
      ),
    );

  before(async () => {
    lab = await createKubeletLab();
    await writeFile(join(lab.manifests, 'one.yaml'), manifest('one', 'echo up; sleep 1000'));
    await lab.boot();
  });
  after(() => lab?.cleanUp());

  it("static pods start without an API server, in upstream's cgroup hierarchy", async () => {
    const container = await running('one');
    const cgroups = await readFile(`/proc/${container.pid}/cgroup`, 'utf8');
    const uid = container.labels['io.kubernetes.pod.uid'] ?? '';
    assert.match(uid, /^[0-9a-f]{32}$/);
    assert.match(cgroups, new RegExp(`memory:/${lab.cgroup}/kubepods/burstable/pod${uid}/`));
    const limit = await readFile(
      `/sys/fs/cgroup/memory/${lab.cgroup}/kubepods/burstable/pod${uid}/memory.limit_in_bytes`,
      'utf8',
    );
    assert.equal(Number(limit), 32 * 1024 * 1024);
    assert.equal(
      (await readFile(`/sys/fs/cgroup/cpu/${lab.cgroup}/kubepods/burstable/pod${uid}/cpu.shares`, 'utf8')).trim(),
      '51',
    );
  });

  it('static pods restart when their process is killed', async () => {
    const first = await running('one');
    process.kill(first.pid, 'SIGKILL');
    const second = await eventually('a new container', async () => {
      const found = await running('one');
      return found.id === first.id ? undefined : found;
    });
    assert.equal(second.attempt, 1);
  });

  it('static pods keep running without their kubelet and are adopted by the next kubelet', async () => {
    const before = await running('one');
    await lab.halt();
    await lab.boot();
    await new Promise((resolve) => setTimeout(resolve, 500));
    const now = await running('one');
    assert.equal(now.id, before.id);
    assert.equal((await lab.runtime().listPodSandboxes()).length, 1);
  });

  it('static pods start and terminate with their manifests', async () => {
    await writeFile(join(lab.manifests, 'two.yaml'), manifest('two', 'sleep 1000'));
    await running('two');
    await rm(join(lab.manifests, 'two.yaml'));
    await eventually(
      'two is gone',
      async () => (await lab.runtime().listPodSandboxes()).every((each) => each.name !== `two-${NODE}`) || undefined,
    );
  });

  it('static pods are replaced when their manifest changes, after the old pod has terminated', async () => {
    const before = await running('one');
    await writeFile(join(lab.manifests, 'one.yaml'), manifest('one', 'echo changed; sleep 1000'));
    const now = await eventually('the changed pod', async () => {
      const found = await running('one');
      return found.labels['io.kubernetes.pod.uid'] === before.labels['io.kubernetes.pod.uid'] ? undefined : found;
    });
    assert.equal(now.attempt, 0);
    await eventually('one sandbox', async () => (await lab.runtime().listPodSandboxes()).length === 1 || undefined);
  });

  it('static pods keep running when their manifest becomes invalid, and the kubelet logs the reason', async () => {
    const before = await running('one');
    await writeFile(join(lab.manifests, 'one.yaml'), 'kind: [Pod');
    await eventually('the error message', () => lab.logLines.find((line) => line.includes('static pod refused')));
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.equal((await running('one')).id, before.id);
  });

  it('static pods have mirror pods at the API, which show the status and are re-created after deletion', async () => {
    const api = new MemoryApi();
    await lab.halt();
    await writeFile(join(lab.manifests, 'one.yaml'), manifest('one', 'echo mirrored; sleep 1000'));
    await lab.boot(api.access());
    await lab.kubelet().nodeReady;
    const key = `kube-system/one-${NODE}`;
    const mirror = await eventually('the mirror is Running', () => {
      const found = api.get(resources.pods, key);
      return found?.status?.phase === 'Running' ? found : undefined;
    });
    assert.equal(
      mirror.metadata?.annotations?.['kubernetes.io/config.mirror'],
      mirror.metadata?.annotations?.['kubernetes.io/config.hash'],
    );
    assert.equal(mirror.metadata?.ownerReferences?.[0]?.uid, api.get(resources.nodes, NODE)?.metadata?.uid);
    assert.equal(mirror.status?.podIP, '127.0.0.1');
    const container = await running('one');
    await api.client().resource(resources.pods).delete(`one-${NODE}`, 'kube-system');
    const next = await eventually('the mirror is back', () => {
      const found = api.get(resources.pods, key);
      return found !== undefined && found.metadata?.uid !== mirror.metadata?.uid && found.status?.phase === 'Running'
        ? found
        : undefined;
    });
    assert.notEqual(next.metadata?.uid, mirror.metadata?.uid);
    assert.equal((await running('one')).id, container.id);
    const logs = await lab.get(`/containerLogs/kube-system/one-${NODE}/main`);
    assert.deepEqual(logs, { code: 200, body: 'mirrored\n' });
  });
});

describe('static pods of a URL', { timeout: 90_000 }, () => {
  it('static pods of a URL cannot use ports that are reserved for the host, while control plane pods from files can', async () => {
    const port = 'ports: [{containerPort: 9443, hostPort: 9443}]';
    const withPort = (name: string): string =>
      manifest(name, 'sleep 1000').replace(/resources:/, `${port}\n    resources:`);
    const item = withPort('remote').trim().replaceAll('\n', '\n  ');
    const list = `apiVersion: v1\nkind: PodList\nitems:\n- ${item}\n`;
    const server = createServer((_, response) => response.end(list));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port: listening } = server.address() as AddressInfo;
    const lab = await createKubeletLab({
      manifestUrl: `http://127.0.0.1:${listening}/`,
      reservedPorts: [{ protocol: 'TCP', port: 9443 }],
    });
    try {
      await writeFile(join(lab.manifests, 'local.yaml'), withPort('local'));
      const api = new MemoryApi();
      await lab.boot(api.access());
      const statusOf = (name: string, phase: string) =>
        eventually(`${name} is ${phase}`, () => {
          const status = api.get(resources.pods, `kube-system/${name}-${NODE}`)?.status;
          return status?.phase === phase ? status : undefined;
        });
      assert.equal((await statusOf('remote', 'Failed')).reason, 'NodePorts');
      await statusOf('local', 'Running');
    } finally {
      server.close();
      await lab.cleanUp();
    }
  });
});
