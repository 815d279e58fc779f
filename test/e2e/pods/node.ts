/** Admission and reporting of pods on the node, static pods and pods of controllers. */
import assert from 'node:assert/strict';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { slack } from '../../support/slack.ts';
import { eventually, type Ran, run, sleep } from '../harness.ts';
import { containerPid } from './content.ts';
import { configMap, idle, isReady, type PodLab, pod, restartsOf, shell } from './lab.ts';

const LIMIT = { timeout: 60_000 };

export function admissionTests(lab: () => PodLab): void {
  test('rejects pods whose constraints the node does not satisfy, with a reason', LIMIT, async () => {
    const node = JSON.parse(await lab().kubectl('get', 'nodes', '-o', 'json')).items[0];
    const nodeName: string = node.metadata.name;
    const asking = (resource: string, amount: string): object =>
      pod(`out-of-${resource}`, { nodeName, containers: [idle({ resources: { requests: { [resource]: amount } } })] });
    const affinity = {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'nowhere', operator: 'Exists' }] }],
        },
      },
    };
    await lab().apply(
      pod('wrong-selector', { nodeName, nodeSelector: { disk: 'ssd' } }),
      pod('wrong-affinity', { nodeName, affinity }),
      asking('cpu', '1000'),
      asking('memory', '10Ti'),
    );
    const expected: Record<string, [string, RegExp]> = {
      'wrong-selector': [
        'NodeAffinity',
        /^Pod was rejected: Predicate NodeAffinity failed: node\(s\) didn't match Pod's node affinity\/selector$/,
      ],
      'wrong-affinity': ['NodeAffinity', /Predicate NodeAffinity failed/],
      'out-of-cpu': [
        'OutOfcpu',
        /^Pod was rejected: Node didn't have enough resource: cpu, requested: 1000000, used: \d+, capacity: \d+$/,
      ],
      'out-of-memory': ['OutOfmemory', /Node didn't have enough resource: memory, requested: 10995116277760,/],
    };
    for (const [name, [reason, message]] of Object.entries(expected)) {
      const { status } = await lab().over(name);
      assert.deepEqual([name, status?.phase, status?.reason], [name, 'Failed', reason]);
      assert.match(status?.message ?? '', message);
      await lab().event(name, reason);
    }
    assert.equal(await lab().shownStatus('out-of-cpu'), 'OutOfcpu');
    await lab().remove(...Object.keys(expected));
  });
}

export function statusTests(lab: () => PodLab): void {
  test('the kubelet reports complete container statuses', LIMIT, async () => {
    await lab().apply(
      configMap('complete', { k: 'v' }),
      pod('complete', {
        volumes: [{ name: 'v', configMap: { name: 'complete' } }],
        containers: [
          idle({
            resources: { requests: { cpu: '10m', memory: '8Mi' }, limits: { memory: '32Mi' } },
            securityContext: { runAsUser: 42, runAsGroup: 43 },
            volumeMounts: [{ name: 'v', mountPath: '/v', readOnly: true }],
          }),
        ],
      }),
    );
    const status = (await lab().ready('complete')).status;
    const container = status?.containerStatuses?.[0];
    assert.match(container?.containerID ?? '', /^runc:\/\/[0-9a-f]{64}$/);
    assert.match(container?.imageID ?? '', /sha256:[0-9a-f]{64}$/);
    assert.ok(container?.state?.running?.startedAt);
    assert.deepEqual([container.ready, container.started, container.restartCount], [true, true, 0]);
    assert.deepEqual(container.resources, { limits: { memory: '32Mi' }, requests: { cpu: '10m', memory: '8Mi' } });
    assert.deepEqual(container.allocatedResources, { cpu: '10m', memory: '8Mi' });
    assert.deepEqual((container as { user?: object }).user, { linux: { uid: 42, gid: 43 } });
    const mounts = container.volumeMounts?.filter((mount) => mount.name === 'v');
    assert.deepEqual(mounts, [{ name: 'v', mountPath: '/v', readOnly: true, recursiveReadOnly: 'Disabled' }]);
    assert.equal(status?.qosClass, 'Burstable');
    assert.ok(status?.podIP !== undefined && status.podIPs?.[0]?.ip === status.podIP && status.hostIP);
    assert.deepEqual(status.conditions?.map((condition) => `${condition.type}=${condition.status}`).toSorted(), [
      'ContainersReady=True',
      'Initialized=True',
      'PodReadyToStartContainers=True',
      'PodScheduled=True',
      'Ready=True',
    ]);
    await lab().remove('complete');
  });

  test('resizes resources in place or by a required restart, or waits for free capacity', LIMIT, async () => {
    const sized = (cpu: string, memory: string) => ({
      requests: { cpu, memory },
      limits: { cpu, memory },
    });
    const resizePolicy = [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }];
    await lab().apply(
      pod('resized', { containers: [idle({ resources: sized('50m', '32Mi') })] }),
      pod('resized-restarts', {
        containers: [{ ...idle({ resources: sized('50m', '32Mi') }), resizePolicy }],
      }),
    );
    await Promise.all([lab().ready('resized'), lab().ready('resized-restarts')]);
    const ask = (name: string, cpu: string, memory: string): Promise<string> => {
      const patch = { spec: { containers: [{ name: 'main', resources: sized(cpu, memory) }] } };
      return lab().kubectl('patch', 'pod', name, '--subresource', 'resize', '-p', JSON.stringify(patch));
    };
    const has = (name: string, cpu: string, memory: string) =>
      lab().until(name, `has ${cpu} and ${memory}`, (each) => {
        const limits = each.status?.containerStatuses?.[0]?.resources?.limits;
        return limits?.['cpu'] === cpu && limits['memory'] === memory && isReady(each);
      });
    await ask('resized', '100m', '64Mi');
    await ask('resized-restarts', '60m', '64Mi');
    const bigger = await has('resized', '100m', '64Mi');
    assert.equal(restartsOf(bigger), 0);
    assert.deepEqual(await limitsOf(lab(), 'resized'), { memory: 64 * 1024 * 1024, cpu: 0.1 });
    await lab().until('resized-restarts', 'restarted', (each) => restartsOf(each) === 1 && isReady(each));
    assert.equal(restartsOf(await has('resized-restarts', '60m', '64Mi')), 1);
    assert.deepEqual(await limitsOf(lab(), 'resized-restarts'), { memory: 64 * 1024 * 1024, cpu: 0.06 });

    await ask('resized', '500', '64Mi');
    const waits = await lab().until(
      'resized',
      'waits',
      (each) => each.status?.conditions?.some((condition) => condition.type === 'PodResizePending') === true,
    );
    const pending = waits.status?.conditions?.find((condition) => condition.type === 'PodResizePending');
    assert.equal(pending?.reason, 'Infeasible');
    assert.match(pending?.message ?? '', /cpu, requested: 500000/);
    assert.deepEqual(waits.status?.containerStatuses?.[0]?.resources, sized('100m', '64Mi'));
    await ask('resized', '20m', '48Mi');
    await has('resized', '20m', '48Mi');
    const smaller = await lab().until(
      'resized',
      'says no more of resizing',
      (each) => each.status?.conditions?.every((condition) => !condition.type.startsWith('PodResize')) === true,
    );
    assert.deepEqual(await limitsOf(lab(), 'resized'), { memory: 48 * 1024 * 1024, cpu: 0.02 });
    assert.equal(restartsOf(smaller), 0);
    await lab().remove('resized', 'resized-restarts');
  });

  test('reports CPU and memory of a pod in the stats summary', LIMIT, async () => {
    const busy = shell(
      "tail -c 20000000 /dev/zero > /dev/shm/held; timeout 4 sh -c 'while :; do :; done'; exec sleep 1000",
      {
        resources: { limits: { cpu: '200m', memory: '64Mi' } },
      },
    );
    const began = performance.now();
    await lab().apply(pod('measured', { containers: [busy] }));
    const running = await lab().ready('measured');
    const node = running.spec?.nodeName ?? '';
    const summary = async (port = '') =>
      JSON.parse(await lab().kubectl('get', '--raw', `/api/v1/nodes/${node}${port}/proxy/stats/summary`)) as Summary;
    await sleep(500);
    const first = await summary();
    await sleep(1_500);
    // The kubelet is also addressed with its port.
    const second = await summary(':10250');
    const of = (each: Summary) => each.pods.find((one) => one.podRef.name === 'measured')?.containers[0];
    const burnt = (of(second)?.cpu.usageCoreNanoSeconds ?? 0) - (of(first)?.cpu.usageCoreNanoSeconds ?? 0);
    const seconds = (Date.parse(of(second)?.cpu.time ?? '') - Date.parse(of(first)?.cpu.time ?? '')) / 1000;
    assert.ok(burnt > 0.05e9 && burnt < 0.8e9, `${burnt} ns in about ${seconds} s under a limit of a fifth of a CPU`);
    const rate = of(second)?.cpu.usageNanoCores ?? 0;
    assert.ok(rate > 0.05e9 && rate < 0.4e9, `${rate} nanocores`);
    const memory = of(second)?.memory.workingSetBytes ?? 0;
    assert.ok(memory > 19e6 && memory < 64 * 1024 * 1024, `${memory} bytes`);
    const { node: whole } = second;
    assert.ok(whole.memory.workingSetBytes > memory && whole.memory.availableBytes > 0);
    assert.ok(whole.cpu.usageCoreNanoSeconds > 0 && whole.fs.capacityBytes > whole.fs.usedBytes);
    assert.ok(performance.now() - began < 30_000);
    await lab().remove('measured');
  });
}

interface Usage {
  readonly time: string;
  readonly usageNanoCores?: number;
  readonly usageCoreNanoSeconds: number;
}

interface Summary {
  readonly node: {
    readonly cpu: Usage;
    readonly memory: { readonly workingSetBytes: number; readonly availableBytes: number };
    readonly fs: { readonly capacityBytes: number; readonly usedBytes: number };
  };
  readonly pods: readonly {
    readonly podRef: { readonly name: string };
    readonly containers: readonly { readonly cpu: Usage; readonly memory: { readonly workingSetBytes: number } }[];
  }[];
}

export function sourceTests(lab: () => PodLab): void {
  test('runs the pods of a DaemonSet and a ReplicationController', LIMIT, async () => {
    const template = (app: string): object => ({
      metadata: { labels: { app } },
      spec: { terminationGracePeriodSeconds: 1, containers: [idle()] },
    });
    await lab().apply(
      {
        apiVersion: 'apps/v1',
        kind: 'DaemonSet',
        metadata: { name: 'every', namespace: 'default' },
        spec: { selector: { matchLabels: { app: 'every' } }, template: template('every') },
      },
      {
        apiVersion: 'v1',
        kind: 'ReplicationController',
        metadata: { name: 'pair', namespace: 'default' },
        spec: { replicas: 2, selector: { app: 'pair' }, template: template('pair') },
      },
    );
    await lab().kubectl('rollout', 'status', 'daemonset/every', '--timeout=30s');
    const ready = (prefix: string): number => lab().podsOf(prefix).filter(isReady).length;
    await lab().untilPods('controlled pods', () => (ready('every-') === 1 && ready('pair-') === 2 ? true : undefined));
    await eventually('counted', 10_000, async () =>
      (await lab().kubectl('get', 'rc', 'pair', '-o', 'jsonpath={.status.readyReplicas}')) === '2' ? true : undefined,
    );
    await lab().kubectl('delete', 'daemonset/every', 'rc/pair');
    await lab().untilPods('controlled pods gone', () =>
      lab().podsOf('every-').length + lab().podsOf('pair-').length === 0 ? true : undefined,
    );
  });

  test('starts, reports, updates and removes static pods', LIMIT, async (context) => {
    const directory = join(lab().appliance.root, 'etc/origin/node/pods');
    const file = join(directory, 'dropped.yaml');
    const put = async (content: string): Promise<void> => {
      await writeFile(join(lab().scratch, 'next.yaml'), content);
      await rename(join(lab().scratch, 'next.yaml'), file).catch(() => writeFile(file, content));
    };
    const manifest = (reported: string): string =>
      JSON.stringify(
        pod('dropped', { containers: [shell(`echo ${reported}; trap 'exit 0' TERM; sleep 1000 & wait`)] }),
      );
    const began = performance.now();
    await put(manifest('one'));
    const first = await lab().untilPods('mirror pod running', () => lab().podsOf('dropped-').find(isReady));
    const mirrored = performance.now() - began;
    const record = first.status?.containerStatuses?.[0]?.state?.running?.startedAt ?? '';
    // Times in the API are truncated to whole seconds.
    const started = Date.parse(record) - (Date.now() - mirrored);
    context.diagnostic(`the mirror said Ready after ${Math.round(mirrored)} ms`);
    // The start takes a third of a second on an idle machine.
    assert.ok(started < 3_000 * slack(), `started ${started} ms after its manifest was there`);
    const name = first.metadata?.name ?? '';
    assert.equal(await lab().logs(name), 'one\n');

    await writeFile(join(directory, 'broken.yaml'), 'apiVersion: v1\nkind: Pod\nmetadata: {name: [');
    await eventually('the error message', 5_000, () =>
      /static pod .*broken\.yaml/.test(lab().appliance.output) ? true : undefined,
    );
    const controlPlane = (): number =>
      lab()
        .podsOf('master-', 'kube-system')
        .filter((each) => isReady(each) && each.status?.containerStatuses?.[0]?.restartCount === 0).length;
    assert.equal(controlPlane(), 3);

    await put(manifest('two'));
    await eventually('replaced', 15_000, async () => ((await lab().logs(name)) === 'two\n' ? true : undefined));
    const second = await lab().untilPods('new mirror', () =>
      lab()
        .podsOf('dropped-')
        .find((each) => isReady(each) && each.metadata?.uid !== first.metadata?.uid),
    );
    assert.equal(restartsOf(second), 0);

    // Deleting the mirror pod does not affect the static pod.
    await lab().kubectl('delete', 'pod', '--wait=false', name);
    const third = await lab().untilPods('mirror back', () =>
      lab()
        .podsOf('dropped-')
        .find((each) => isReady(each) && each.metadata?.uid !== second.metadata?.uid),
    );
    assert.equal(third.status?.containerStatuses?.[0]?.containerID, second.status?.containerStatuses?.[0]?.containerID);

    await Promise.all([rm(file), rm(join(directory, 'broken.yaml'))]);
    await lab().untilPods('mirror gone', () => (lab().podsOf('dropped-').length === 0 ? true : undefined));
    assert.equal(controlPlane(), 3);
  });
}

export function submittedTests(lab: () => PodLab): void {
  const ask = async (method: string, path: string, ...more: string[]): Promise<string> => {
    const socket = join(lab().appliance.root, 'run/hyperedge/control.sock');
    const { stdout } = await run('curl', [
      '-sS',
      '-X',
      method,
      '--unix-socket',
      socket,
      ...more,
      `http://localhost${path}`,
    ]);
    return stdout;
  };

  test(
    'runs submitted static pods and static pods under the key of the node until they are removed',
    LIMIT,
    async () => {
      const file = join(lab().scratch, 'submitted.json');
      await writeFile(file, JSON.stringify(pod('submitted', {})));
      assert.match(
        await ask('POST', '/pods', '--data-binary', `@${file}`),
        /"kubernetes.io\/config.source":"submitted"/,
      );
      assert.match(await ask('POST', '/pods', '--data-binary', 'kind: Secret'), /not a v1 Pod/);
      assert.equal(JSON.parse(await ask('GET', '/pods')).items.length, 1);
      const node = (await lab().kubectl('get', 'nodes', '-o', 'name')).trim().replace('node/', '');
      const master = join(lab().appliance.root, 'etc/origin/master');
      const etcdctl = (...args: string[]): Promise<Ran> =>
        lab().appliance.inside(
          'etcdctl',
          [
            `--cacert=${join(master, 'master.etcd-ca.crt')}`,
            `--cert=${join(master, 'master.etcd-client.crt')}`,
            `--key=${join(master, 'master.etcd-client.key')}`,
            ...args,
          ],
          { env: { ETCDCTL_API: '3' } },
        );
      const stored = await etcdctl('put', `/registry/hosts/${node}`, JSON.stringify(pod('stored', {})));
      assert.equal(stored.code, 0, stored.stderr);
      for (const name of ['submitted', 'stored'])
        await lab().untilPods(`${name} ready`, () => lab().podsOf(`${name}-`).find(isReady));
      await etcdctl('del', `/registry/hosts/${node}`);
      await ask('DELETE', '/pods/default/submitted');
      await lab().untilPods('both gone', () =>
        lab().podsOf('submitted-').length + lab().podsOf('stored-').length === 0 ? true : undefined,
      );
    },
  );
}

/** Memory (bytes) and CPU limits of the first container in the kernel. */
async function limitsOf(lab: PodLab, name: string): Promise<{ readonly memory: number; readonly cpu: number }> {
  const lines = (await readFile(`/proc/${await containerPid(lab, name)}/cgroup`, 'utf8')).trim().split('\n');
  const groups = new Map<string, string>();
  for (const line of lines) {
    const [, controllers = '', path = ''] = line.split(':');
    for (const controller of controllers.split(',')) groups.set(controller, path);
  }
  const value = async (controller: string, file: string): Promise<string> =>
    (await readFile(join('/sys/fs/cgroup', controller, groups.get(controller) ?? '', file), 'utf8')).trim();
  if (groups.has('memory')) {
    const quota = Number(await value('cpu', 'cpu.cfs_quota_us'));
    return { memory: Number(await value('memory', 'memory.limit_in_bytes')), cpu: quota / 100_000 };
  }
  const [quota, period] = (await value('', 'cpu.max')).split(' ').map(Number);
  return { memory: Number(await value('', 'memory.max')), cpu: (quota ?? 0) / (period ?? 1) };
}
