/**
 * `systemctl start hyperedge` on a host with a real systemd: the systemd cgroup driver, restarts of the unit, shutdown,
 * power cuts. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { HELLO_IMAGE, writeHelloImage } from '../../build/hello-image.ts';
import { eventually, run } from '../e2e/harness.ts';
import { NspawnHost, whyNoNspawn } from './support/nspawn-host.ts';

const missing = await whyNoNspawn();
if (missing !== undefined) console.log(`not run: ${missing}`);

/** Programs that run beside the host process for all its life. */
const MONITORS = new Set(['ip', 'nft']);
const MiB = 1024 * 1024;

const pod = (name: string, command: string, extra: string): string => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: default}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: main
    image: ${HELLO_IMAGE}
    command: [/bin/sh, -c, ${JSON.stringify(command)}]
    ${extra}
`;

describe('host with systemd', { skip: missing ?? false }, () => {
  let host: NspawnHost;

  before(async () => {
    host = await NspawnHost.create((line) => console.log(line));
    await host.boot();
  });

  after(async () => {
    await host?.stop();
  });

  /** Waits until the node is Ready with a lease renewed after this call. */
  async function ready(timeoutMs: number): Promise<number> {
    const begin = performance.now();
    const beginMs = Date.now();
    try {
      await eventually('node Ready', timeoutMs, async () => {
        const node = JSON.parse(await host.mustKubectl(['get', 'node', host.name, '-o', 'json'], { timeoutMs: 5_000 }));
        const condition = node.status.conditions?.find((each: { type: string }) => each.type === 'Ready');
        // The heartbeat has whole seconds and may be sent just before systemctl returns.
        return condition?.status === 'True' && Date.parse(condition.lastHeartbeatTime) >= beginMs - 2_000
          ? true
          : undefined;
      });
    } catch (error) {
      throw new Error(`${String(error)}\n${(await host.journal()).slice(-4_000)}`);
    }
    return performance.now() - begin;
  }

  const containerId = async (name: string, namespace = 'default'): Promise<string> => {
    const path = 'jsonpath={.status.containerStatuses[0].containerID}';
    return (await host.mustKubectl(['-n', namespace, 'get', 'pod', name, '-o', path])).replace(/^.*:\/\//, '');
  };

  const restarts = async (name: string): Promise<number> =>
    Number(await host.mustKubectl(['get', 'pod', name, '-o', 'jsonpath={.status.containerStatuses[0].restartCount}']));

  const componentPids = async (): Promise<number[]> => {
    const pids: number[] = [];
    for (const component of ['etcd', 'api', 'controllers'])
      pids.push(...(await host.containerPids(await containerId(`master-${component}-${host.name}`, 'kube-system'))));
    return pids;
  };

  const failedUnits = (): Promise<string> =>
    host.must('systemctl', ['list-units', '--failed', '--plain', '--no-legend']);

  test('a host with systemd becomes Ready with the control plane as static pods and without failed units', async () => {
    await host.must('systemctl', ['enable', '--now', 'hyperedge']);
    const ms = await ready(60_000);
    console.log(`Ready ${(ms / 1000).toFixed(2)} s after systemctl start`);
    assert.equal(await host.must('systemctl', ['is-active', 'hyperedge']), 'active\n');
    await host.mustKubectl(['-n', 'kube-system', 'wait', 'pod', '--all', '--for=condition=Ready', '--timeout=30s']);
    assert.equal((await componentPids()).length, 3);
    const unit = await host.must('systemctl', ['show', 'hyperedge', '-p', 'ControlGroup', '--value']);
    // Programs such as nft run in the unit for a moment.
    await eventually('the host process and its monitors alone in the unit', 10_000, async () => {
      const processes = await host.must('cat', [join('/sys/fs/cgroup/systemd', unit.trim(), 'cgroup.procs')]);
      const comms = processes
        .trim()
        .split('\n')
        .map((pid) => `/proc/${pid}/comm`);
      const names = await host.must('cat', comms).catch(() => '');
      const commands = names
        .trim()
        .split('\n')
        .map((each) => each.trim());
      return commands.filter((each) => !MONITORS.has(each)).length === 1 ? true : undefined;
    });
    assert.equal(await failedUnits(), '');
  });

  test('creates the same slices for a pod as the upstream kubelet, with limits in the kernel and in systemd', async () => {
    const archive = join(host.root, 'root/hello.tar');
    await writeHelloImage(archive);
    await host.must('hyperedge', ['image', 'import', '/root/hello.tar']);
    const resources = 'resources: {limits: {memory: 32Mi, cpu: 250m}, requests: {memory: 16Mi, cpu: 100m}}';
    const begin = performance.now();
    await host.mustKubectl(['apply', '-f', '-'], { input: pod('limited', 'sleep 100000', resources) });
    await host.mustKubectl(['wait', 'pod/limited', '--for=condition=Ready', '--timeout=30s']);
    const elapsedMs = performance.now() - begin;
    console.log(`pod Ready ${elapsedMs.toFixed(0)} ms after apply`);
    assert.ok(elapsedMs < 5_000, `${elapsedMs} ms`);

    const uid = await host.mustKubectl(['get', 'pod', 'limited', '-o', 'jsonpath={.metadata.uid}']);
    const id = await containerId('limited');
    const slice = `kubepods-burstable-pod${uid.replaceAll('-', '_')}.slice`;
    const podPath = `kubepods.slice/kubepods-burstable.slice/${slice}`;
    const [pid] = await host.containerPids(id);
    assert.ok(pid !== undefined);
    const at = async (controller: string, level: string, file: string): Promise<string> => {
      const path = await host.cgroupOf(pid, controller);
      assert.ok(path.endsWith(`/${podPath}/hyperedge-${id}.scope`), path);
      const base = path.slice(0, path.indexOf('/kubepods.slice'));
      return (await readFile(join('/sys/fs/cgroup', controller, base, level, file), 'utf8')).trim();
    };
    const scope = `${podPath}/hyperedge-${id}.scope`;
    for (const level of [podPath, scope]) {
      assert.equal(await at('memory', level, 'memory.limit_in_bytes'), String(32 * MiB), level);
      assert.equal(await at('cpu', level, 'cpu.cfs_quota_us'), '25000', level);
      assert.equal(await at('cpu', level, 'cpu.shares'), '102', level);
    }
    const shown = await host.must('systemctl', ['show', slice, '-p', 'MemoryLimit,CPUShares,CPUQuotaPerSecUSec']);
    assert.deepEqual(shown.trim().split('\n').sort(), [
      'CPUQuotaPerSecUSec=250ms',
      'CPUShares=102',
      `MemoryLimit=${32 * MiB}`,
    ]);
    // systemd writes the limits of the slice again on a reload.
    await host.must('systemctl', ['daemon-reload']);
    assert.equal(await at('memory', podPath, 'memory.limit_in_bytes'), String(32 * MiB));
    assert.equal(await at('cpu', podPath, 'cpu.cfs_quota_us'), '25000');
  });

  test('reports OOMKilled, and removes the slice of a deleted pod', async () => {
    const hungry = pod('hungry', 'sleep 0.5; tail /dev/zero', 'resources: {limits: {memory: 24Mi}}');
    await host.mustKubectl(['apply', '-f', '-'], { input: hungry });
    await eventually('OOMKilled', 30_000, async () => {
      const status = JSON.parse(await host.mustKubectl(['get', 'pod', 'hungry', '-o', 'json'])).status;
      const container = status.containerStatuses?.[0];
      const ended = container?.lastState?.terminated ?? container?.state?.terminated;
      return ended?.reason === 'OOMKilled' ? true : undefined;
    });
    const uid = await host.mustKubectl(['get', 'pod', 'hungry', '-o', 'jsonpath={.metadata.uid}']);
    const slice = `kubepods-burstable-pod${uid.replaceAll('-', '_')}.slice`;
    assert.equal(await host.must('systemctl', ['is-active', slice]), 'active\n');
    await host.mustKubectl(['delete', 'pod', 'hungry', '--now']);
    await eventually('the slice is deleted', 10_000, async () =>
      (await host.inside('systemctl', ['is-active', slice])).stdout === 'inactive\n' ? true : undefined,
    );
    assert.equal(await failedUnits(), '');
    assert.equal(await host.must('systemctl', ['is-active', 'hyperedge']), 'active\n');
  });

  test('pods keep running when the host process restarts or stops, and its next start adopts them', async () => {
    const before = [...(await componentPids()), ...(await host.containerPids(await containerId('limited')))];
    assert.equal(before.length, 4);
    await host.must('systemctl', ['restart', 'hyperedge']);
    await ready(30_000);
    const running = async (): Promise<number[]> => [
      ...(await componentPids()),
      ...(await host.containerPids(await containerId('limited'))),
    ];
    assert.deepEqual(await running(), before);

    const begin = performance.now();
    await host.must('systemctl', ['stop', 'hyperedge']);
    assert.ok(performance.now() - begin < 10_000, 'an ordinary stop waits for no pod');
    assert.equal(await host.mustKubectl(['get', '--raw', '/readyz']), 'ok');
    assert.deepEqual(await running(), before);
    await host.must('systemctl', ['start', 'hyperedge']);
    await ready(30_000);
    assert.deepEqual(await running(), before);

    await host.must('systemctl', ['kill', '-s', 'KILL', 'hyperedge']);
    await ready(30_000);
    assert.deepEqual(await running(), before);
    assert.equal(await restarts('limited'), 0);
    // The process that holds the load balancer's port stays until its connections have ended.
    const left = (await host.journal())
      .split('\n')
      .filter((line) => /left-over process|remains running/.test(line) && !line.includes('(hyperedge-keep)'));
    assert.deepEqual(left, []);
  });

  test('terminates pods in order at power-off and starts them at the next boot', async () => {
    await host.mustKubectl(['create', 'configmap', 'remembered', '--from-literal=k=v']);
    const ms = await host.powerOff();
    console.log(`powered off in ${(ms / 1000).toFixed(1)} s`);
    assert.ok(ms < 30_000, `${ms} ms`);
    await host.boot();
    await ready(60_000);
    assert.equal(await host.mustKubectl(['get', 'configmap', 'remembered', '-o', 'jsonpath={.data.k}']), 'v');
    await host.mustKubectl(['wait', 'pod/limited', '--for=condition=Ready', '--timeout=60s']);
    const journal = await host.must('journalctl', ['--no-pager', '-u', 'hyperedge', '-b', '-1']);
    assert.match(journal, /stopping, pods too/);
    assert.match(journal, /stopped after/);
  });

  test('a host with systemd starts with all data after a power cut', async () => {
    const begun = await restarts('limited');
    await host.mustKubectl(['create', 'configmap', 'just-now', '--from-literal=k=v']);
    await host.cutPower();
    await host.boot();
    const ms = await ready(60_000);
    console.log(`Ready ${(ms / 1000).toFixed(2)} s after the boot`);
    assert.equal(await host.mustKubectl(['get', 'configmap', 'just-now', '-o', 'jsonpath={.data.k}']), 'v');
    await host.mustKubectl(['wait', 'pod/limited', '--for=condition=Ready', '--timeout=60s']);
    assert.equal((await host.containerPids(await containerId('limited'))).length, 1);
    assert.ok((await restarts('limited')) > begun);
    assert.equal(await failedUnits(), '');
  });

  test('a stopped host leaves no mounts, network namespaces and cgroups on the machine', async () => {
    await host.stop();
    const mounts = await readFile('/proc/self/mountinfo', 'utf8');
    assert.ok(!mounts.includes(host.root));
    assert.ok(!(await run('ip', ['netns', 'list'])).stdout.includes(host.name));
    assert.equal((await run('find', ['/sys/fs/cgroup', '-maxdepth', '2', '-name', host.name])).stdout, '');
  });
});
