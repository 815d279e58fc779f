import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Container, Pod, PodSpec } from '../../../src/api/generated/core/v1.ts';
import { setPodDefaults } from '../../../src/api/podspec/defaults.ts';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import { LogRotation } from '../../../src/kubelet/housekeeping/log-rotation.ts';
import { createKubeletFiles } from '../../../src/kubelet/io/files/index.ts';
import { createMounter } from '../../../src/kubelet/io/host-facts/index.ts';
import type { PodServices } from '../../../src/kubelet/pods/services.ts';
import { rotatedLogs } from '../../../src/kubelet/server/log-chain.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

describe('pods of the API', { timeout: 120_000 }, () => {
  let lab: KubeletLab;
  const api = new MemoryApi();

  const container = (script: string, more: Partial<Container> = {}): Container => ({
    name: 'main',
    image: IMAGE,
    command: ['/bin/sh', '-c', script],
    ...more,
  });
  const create = (name: string, spec: PodSpec, metadata: Pod['metadata'] = {}): void => {
    const pod: Pod = {
      metadata: { name, namespace: 'default', ...metadata },
      spec: { nodeName: NODE, terminationGracePeriodSeconds: 1, ...spec },
      status: { phase: 'Pending' },
    };
    setPodDefaults(pod);
    api.put(resources.pods, pod);
  };
  const pod = (name: string): Pod | undefined => api.get(resources.pods, `default/${name}`);
  const when = (name: string, what: string, test: (pod: Pod) => boolean, timeoutMs?: number): Promise<Pod> =>
    eventually(
      `${name}: ${what}`,
      () => {
        const found = pod(name);
        return found !== undefined && test(found) ? found : undefined;
      },
      timeoutMs,
    ).catch((error: unknown) => {
      throw new Error(
        `${error instanceof Error ? error.message : error}; status: ${JSON.stringify(pod(name)?.status)}`,
      );
    });
  const condition = (found: Pod, type: string): string | undefined =>
    found.status?.conditions?.find((each) => each.type === type)?.status;
  const logs = async (name: string, query = ''): Promise<string> =>
    (await lab.get(`/containerLogs/default/${name}/main${query}`)).body;

  before(async () => {
    lab = await createKubeletLab();
    api.put(resources.configMaps, {
      metadata: { name: 'settings', namespace: 'default' },
      data: { COLOUR: 'blue', 'app.conf': 'one' },
    });
    api.put(resources.secrets, {
      metadata: { name: 'keys', namespace: 'default' },
      data: { password: Buffer.from('s3cret').toString('base64') },
    });
    api.put(resources.services, {
      metadata: { name: 'web-app', namespace: 'default' },
      spec: { clusterIP: '172.30.0.9', ports: [{ port: 80, name: 'http' }] },
    });
    await lab.boot(api.access());
    await lab.kubelet().nodeReady;
  });
  after(() => lab?.cleanUp());

  it('registers a complete Ready Node and renews a lease', async () => {
    const node = api.get(resources.nodes, NODE);
    assert.equal(node?.spec?.externalID, undefined);
    for (const [field, value] of Object.entries(node?.status?.nodeInfo ?? {})) assert.notEqual(value, '', field);
    assert.match(node?.status?.nodeInfo?.containerRuntimeVersion ?? '', /^\w+:\/\/[\d.]+/);
    assert.deepEqual(
      node?.status?.conditions?.map((each) => `${each.type}=${each.status}`),
      ['MemoryPressure=False', 'DiskPressure=False', 'PIDPressure=False', 'Ready=True'],
    );
    assert.equal(node?.status?.capacity?.['pods'], '250');
    const lease = await eventually('the lease', () => api.get(resources.leases, `kube-node-lease/${NODE}`));
    assert.equal(lease.spec?.holderIdentity, NODE);
    assert.match(String(lease.spec?.renewTime), /\.\d{6}Z$/);
  });

  it('runs pods with environment, volumes and addresses, waits for readiness and terminates pods gracefully', async () => {
    create(
      'full',
      {
        initContainers: [
          container('echo prepared > /work/init', {
            name: 'prepare',
            volumeMounts: [{ name: 'work', mountPath: '/work' }],
          }),
        ],
        containers: [
          container(
            'echo $COLOUR $PASSWORD $POD $JOINED $WEB_APP_SERVICE_HOST $LIMIT; cat /work/init /etc/conf/app.conf /etc/keys/password; echo; cat /tokens/token /info/labels; touch /tmp/ready; trap "echo bye; exit 0" TERM; while true; do sleep 0.1; done',
            {
              env: [
                { name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'keys', key: 'password' } } },
                { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
                { name: 'JOINED', value: '$(POD)-$(COLOUR)-$$(POD)-$(NONE)' },
                { name: 'LIMIT', valueFrom: { resourceFieldRef: { resource: 'limits.memory', divisor: '1Mi' } } },
              ],
              envFrom: [{ configMapRef: { name: 'settings' } }],
              resources: { limits: { cpu: '200m', memory: '64Mi' } },
              readinessProbe: { exec: { command: ['/bin/sh', '-c', 'test -f /tmp/ready'] }, periodSeconds: 1 },
              volumeMounts: [
                { name: 'work', mountPath: '/work' },
                { name: 'conf', mountPath: '/etc/conf' },
                { name: 'keys', mountPath: '/etc/keys' },
                { name: 'tokens', mountPath: '/tokens' },
                { name: 'info', mountPath: '/info' },
                { name: 'work', mountPath: '/deep', subPath: 'a/b' },
              ],
            },
          ),
        ],
        volumes: [
          { name: 'work', emptyDir: {} },
          { name: 'conf', configMap: { name: 'settings' } },
          { name: 'keys', secret: { secretName: 'keys' } },
          { name: 'tokens', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
          { name: 'info', downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
        ],
      },
      { labels: { app: 'full' } },
    );
    const ready = await when('full', 'ready', (found) => condition(found, 'Ready') === 'True');
    assert.equal(ready.status?.phase, 'Running');
    assert.equal(ready.status?.qosClass, 'Burstable');
    assert.match(ready.status?.podIP ?? '', /^10\.2\d\d\./);
    assert.equal(ready.status?.initContainerStatuses?.[0]?.state?.terminated?.reason, 'Completed');
    assert.equal(ready.status?.containerStatuses?.[0]?.started, true);
    assert.equal(
      await logs('full'),
      'blue s3cret full full-blue-$(POD)-$(NONE) 172.30.0.9 64\nprepared\nones3cret\ntoken-of-defaultapp="full"',
    );
    const reasons = api.events.filter((event) => event.object === 'default/full').map((event) => event.reason);
    for (const reason of ['Pulled', 'Created', 'Started']) assert.ok(reasons.includes(reason), reason);

    const current = api.get(resources.configMaps, 'default/settings');
    api.put(resources.configMaps, { ...current, data: { COLOUR: 'blue', 'app.conf': 'two' } });
    const id =
      (await lab.runtime().listContainers()).find(
        (each) => each.state === 'running' && each.labels['io.kubernetes.pod.name'] === 'full',
      )?.id ?? '';
    await eventually('the changed file', async () => {
      const result = await lab.runtime().execSync(id, ['cat', '/etc/conf/app.conf'], {
        timeoutMs: 5_000,
        maxOutputBytes: 1024,
      });
      return Buffer.from(result.stdout).toString() === 'two' || undefined;
    });

    await api.client().resource(resources.pods).delete('full', 'default', { gracePeriodSeconds: 5 });
    const started = Date.now();
    await eventually('the object is deleted', () => pod('full') === undefined || undefined);
    assert.ok(Date.now() - started < 4_000, 'a container that obeys SIGTERM needs no grace');
    await eventually('nothing is left', async () => {
      const left = (await lab.runtime().listPodSandboxes()).filter((each) => each.name === 'full');
      return left.length === 0 || undefined;
    });
    assert.doesNotMatch(await readFile('/proc/self/mountinfo', 'utf8'), new RegExp(`${lab.directory}/volumes/`));
  });

  it('reports OOMKilled and waits before the second restart', async () => {
    create('hungry', {
      containers: [
        container('sleep 0.2; x=a; while true; do x=$x$x; done', { resources: { limits: { memory: '16Mi' } } }),
      ],
    });
    const found = await when(
      'hungry',
      'CrashLoopBackOff',
      (each) => each.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CrashLoopBackOff',
    );
    const status = found.status?.containerStatuses?.[0];
    assert.equal(status?.lastState?.terminated?.reason, 'OOMKilled');
    assert.equal(status?.restartCount, 1);
    assert.match(
      status?.state?.waiting?.message ?? '',
      /^back-off 10s restarting failed container=main pod=hungry_default\(/,
    );
    assert.equal(found.status?.phase, 'Running');
    assert.equal(condition(found, 'Ready'), 'False');
    await api.client().resource(resources.pods).delete('hungry', 'default', { gracePeriodSeconds: 1 });
    await eventually('gone', () => pod('hungry') === undefined || undefined);
  });

  it('sets a final phase for pods that are not restarted', async () => {
    create('job', { restartPolicy: 'Never', containers: [container('echo done')] });
    create('broken', { restartPolicy: 'Never', containers: [container('echo why > /dev/termination-log; exit 3')] });
    const done = await when('job', 'Succeeded', (found) => found.status?.phase === 'Succeeded');
    assert.equal(done.status?.conditions?.find((each) => each.type === 'Ready')?.reason, 'PodCompleted');
    assert.equal(await logs('job'), 'done\n');
    const broken = await when('broken', 'Failed', (found) => found.status?.phase === 'Failed');
    const terminated = broken.status?.containerStatuses?.[0]?.state?.terminated;
    assert.equal(terminated?.exitCode, 3);
    assert.equal(terminated?.reason, 'Error');
    assert.equal(terminated?.message, 'why\n');
  });

  it('reports the reason when an image or a setting prevents the start of a container', async () => {
    create('no-image', {
      containers: [container('true', { image: 'localhost:1/none:1', imagePullPolicy: 'IfNotPresent' })],
    });
    create('no-config', { containers: [container('true', { envFrom: [{ configMapRef: { name: 'missing' } }] })] });
    await when(
      'no-image',
      'ErrImagePull',
      (found) => found.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'ErrImagePull',
    );
    const backing = await when(
      'no-image',
      'ImagePullBackOff',
      (found) => found.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'ImagePullBackOff',
    );
    assert.match(
      backing.status?.containerStatuses?.[0]?.state?.waiting?.message ?? '',
      /^Back-off pulling image "localhost:1\/none:1": ErrImagePull: /,
    );
    assert.equal(backing.status?.phase, 'Pending');
    const found = await when(
      'no-config',
      'CreateContainerConfigError',
      (each) => each.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CreateContainerConfigError',
    );
    assert.equal(found.status?.containerStatuses?.[0]?.state?.waiting?.message, 'configmap "missing" not found');
    // The pod starts as soon as the missing object exists.
    api.put(resources.configMaps, { metadata: { name: 'missing', namespace: 'default' }, data: {} });
    await when(
      'no-config',
      'ran',
      (each) => each.status?.containerStatuses?.[0]?.state?.waiting?.reason !== 'CreateContainerConfigError',
    );
    for (const name of ['no-image', 'no-config']) {
      await api.client().resource(resources.pods).delete(name, 'default', { gracePeriodSeconds: 1 });
      await eventually(`${name} is deleted`, () => pod(name) === undefined || undefined);
    }
  });

  it('restarts a container that fails its liveness probe and keeps sidecars running', async () => {
    create('sick', {
      initContainers: [container('while true; do sleep 0.1; done', { name: 'helper', restartPolicy: 'Always' })],
      containers: [
        container('touch /tmp/well; sleep 0.3; rm /tmp/well; sleep 1000', {
          livenessProbe: {
            exec: { command: ['test', '-f', '/tmp/well'] },
            periodSeconds: 1,
            failureThreshold: 1,
            initialDelaySeconds: 1,
          },
        }),
      ],
    });
    const found = await when(
      'sick',
      'restarted',
      (each) => (each.status?.containerStatuses?.[0]?.restartCount ?? 0) > 0,
    );
    assert.equal(found.status?.initContainerStatuses?.[0]?.restartCount, 0);
    assert.notEqual(found.status?.initContainerStatuses?.[0]?.state?.running, undefined);
    assert.equal(found.status?.containerStatuses?.[0]?.lastState?.terminated?.exitCode, 137);
    assert.ok(
      api.events.some((event) => event.reason === 'Unhealthy' && event.message.startsWith('Liveness probe failed')),
    );
    assert.ok(
      api.events.some(
        (event) =>
          event.reason === 'Killing' && event.message === 'Container main failed liveness probe, will be restarted',
      ),
    );
    await api.client().resource(resources.pods).delete('sick', 'default', { gracePeriodSeconds: 1 });
    await eventually('gone', () => pod('sick') === undefined || undefined);
  });

  it('the kubelet server serves only authorized clients', async () => {
    assert.equal((await lab.get('/pods', 'nobody')).code, 401);
    assert.equal((await lab.get('/pods', 'bearer-reader')).code, 200);
    assert.equal(
      (await lab.get('/exec/default/job/main?command=id', 'bearer-reader')).code,
      403,
      'get on nodes/proxy is not enough to run something',
    );
    assert.equal((await lab.get('/run/default/job/main?cmd=id', 'bearer-reader', 'POST')).code, 403);
    assert.equal((await lab.get('/containerLogs/default/..%2f..%2fetc/main')).code, 404);
    assert.equal((await lab.get('/checkpoint/default/job/main', 'bearer-reader', 'POST')).code, 403);
    assert.equal((await lab.get('/checkpoint/default/none/main', 'admin', 'POST')).code, 404);
    assert.equal((await lab.get('/checkpoint/default/job/main')).code, 405);
    assert.equal((await lab.get('/healthz')).body, 'ok');
    const summary = JSON.parse((await lab.get('/stats/summary')).body) as {
      node: { nodeName: string; memory: { workingSetBytes: number } };
    };
    assert.equal(summary.node.nodeName, NODE);
    assert.ok(summary.node.memory.workingSetBytes > 0);
    assert.match((await lab.get('/metrics/resource')).body, /^node_cpu_usage_seconds_total \d/m);
  });

  it('the kubelet server runs commands over a WebSocket', async () => {
    create('shell', { containers: [container('sleep 1000')] });
    await when('shell', 'Running', (found) => found.status?.phase === 'Running');
    const output = await lab.exec(
      '/exec/default/shell/main?input=1&output=1&error=1&command=/bin/sh&command=-c&command=read%20x;echo%20got%20$x;exit%207',
      'hello\n',
    );
    assert.equal(output.stdout, 'got hello\n');
    assert.match(output.error, /command terminated with non-zero exit code|"7"/);
    assert.equal((await lab.execStatus('/exec/default/shell/main?output=1&command=id', 'bearer-reader')).code, 403);
    assert.equal((await lab.execStatus('/exec/default/shell/main?output=1&command=id', 'nobody')).code, 401);
    assert.equal((await lab.execStatus('/exec/default/shell/other?output=1&command=id', 'admin')).code, 404);
  });

  it('the kubelet rotates logs without losing a line', async () => {
    create('busy', {
      containers: [container('i=0; while [ $i -lt 400 ]; do echo $i; i=$((i+1)); sleep 0.005; done; sleep 1000')],
    });
    await when('busy', 'Running', (found) => found.status?.phase === 'Running');
    const follow = lab.get('/containerLogs/default/busy/main?follow=true&limitBytes=1490');
    const settings = { containerLogMaxBytes: 4_000, containerLogMaxFiles: 3 };
    const containers = await lab.runtime().listContainers();
    const files = createKubeletFiles(createMounter());
    const services = {
      settings,
      files,
      view: { uids: () => ['all'], get: () => ({ sandboxes: [], containers }) },
      runtime: lab.runtime(),
      clock: { nowMs: () => Date.now() + rotations++ * 1000, monotonicMs: () => performance.now() },
      log: silentLog,
    };
    let rotations = 0;
    const logged = containers.find((each) => each.labels['io.kubernetes.pod.name'] === 'busy')?.logPath ?? '';
    const rotation = new LogRotation(services as unknown as PodServices);
    await eventually('three rotations', async () => {
      await rotation.rotate();
      return rotations >= 3 || undefined;
    });
    assert.equal((await follow).body, Array.from({ length: 400 }, (_, index) => `${index}\n`).join(''));
    assert.equal((await rotatedLogs(files.logs, logged)).length, 2);
  });

  it('the kubelet server serves logs with follow, tail and timestamps', async () => {
    const signals = join(lab.directory, 'signals');
    await mkdir(signals);
    const script =
      'i=0; while [ $i -lt 30 ]; do echo line $i; i=$((i+1)); done; until [ -e /signals/go ]; do sleep 0.1; done; echo last';
    create('chatty', {
      containers: [container(script, { volumeMounts: [{ name: 'signals', mountPath: '/signals' }] })],
      volumes: [{ name: 'signals', hostPath: { path: signals } }],
      restartPolicy: 'Never',
    });
    await when('chatty', 'Running', (found) => found.status?.phase === 'Running');
    await eventually('all lines', async () => (await logs('chatty')).endsWith('line 29\n') || undefined);
    const followed = logs('chatty', '?follow=true&tailLines=2');
    assert.equal(await logs('chatty', '?tailLines=2'), 'line 28\nline 29\n');
    assert.equal(await logs('chatty', '?limitBytes=6'), 'line 0');
    assert.match(
      await logs('chatty', '?tailLines=1&timestamps=true'),
      /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-](?!00:00)\d\d:\d\d) line 29\n$/,
    );
    await writeFile(join(signals, 'go'), '');
    assert.equal(await followed, 'line 28\nline 29\nlast\n');
    assert.equal((await lab.get('/containerLogs/default/chatty/main?previous=true')).code, 400);
    assert.equal((await lab.get('/containerLogs/default/nobody/main')).code, 404);
  });
});
