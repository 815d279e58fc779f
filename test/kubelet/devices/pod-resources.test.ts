/**
 * Node resources for pods with real containers: exclusive CPUs, pod-level limits, runtime classes, restart rules and
 * hooks.
 */
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { DEFAULT_RESOURCE_POLICIES } from '../../../src/kubelet/resources/policies.ts';
import { createKubeletLab, eventually, IMAGE, type KubeletLab, NODE } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

const shell = (script: string, more: object = {}): object => ({
  name: 'main',
  image: IMAGE,
  imagePullPolicy: 'IfNotPresent',
  command: ['/bin/sh', '-c', script],
  ...more,
});
const idle = (more: object = {}): object => shell("trap 'exit 0' TERM; sleep 1000 & wait", more);
const amounts = (cpu: string): object => {
  const each = { cpu, memory: '32Mi' };
  return { resources: { limits: each, requests: each } };
};

describe('pod resources', { timeout: 120_000 }, () => {
  const api = new MemoryApi();
  let lab: KubeletLab;
  const seen = (name: string, holds: (pod: Pod) => boolean): Promise<Pod> =>
    eventually(name, async () => {
      const pod = api.get(resources.pods, `default/${name}`);
      return pod !== undefined && holds(pod) ? pod : undefined;
    });
  const put = (name: string, spec: object): void => {
    api.put(resources.pods, {
      metadata: { name, namespace: 'default', uid: `uid-${name}` },
      spec: { nodeName: NODE, hostNetwork: true, terminationGracePeriodSeconds: 1, ...spec },
      status: { phase: 'Pending' },
    } as unknown as Pod);
  };
  const running = (pod: Pod): boolean => pod.status?.phase === 'Running';
  const over = (pod: Pod): boolean => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
  const cpusOf = async (name: string): Promise<string | undefined> => {
    const all = await lab.runtime().listContainers();
    const container = all.find((each) => each.labels['io.kubernetes.pod.uid'] === `uid-${name}`);
    const status = await readFile(`/proc/${container?.pid ?? 0}/status`, 'utf8').catch(() => '');
    return /^Cpus_allowed_list:\s+(.*)$/m.exec(status)?.[1];
  };

  before(async () => {
    lab = await createKubeletLab({
      resources: { ...DEFAULT_RESOURCE_POLICIES, cpuManager: 'static', reservedCpus: '0' },
    });
    await lab.boot(api.access());
  });
  after(() => lab?.cleanUp());

  it('gives a Guaranteed container exclusive CPUs and removes the CPUs from the shared pool', async () => {
    put('shared', { containers: [idle()] });
    await seen('shared', running);
    assert.equal(await cpusOf('shared'), '0-1');
    put('exclusive', { containers: [idle(amounts('1'))] });
    await seen('exclusive', running);
    assert.equal(await cpusOf('exclusive'), '1');
    await eventually('shared container moved', async () => ((await cpusOf('shared')) === '0' ? true : undefined));
    const state = JSON.parse(await readFile(join(lab.directory, 'cpu_manager_state'), 'utf8'));
    assert.deepEqual(state, {
      policyName: 'static',
      defaultCpuSet: '0',
      entries: { 'uid-exclusive': { main: '1' } },
    });
    put('late', { containers: [idle(amounts('1'))] });
    const late = await seen('late', (pod) => pod.status?.phase === 'Failed');
    assert.equal(late.status?.reason, 'UnexpectedAdmissionError');
    assert.match(late.status?.message ?? '', /not enough cpus available to satisfy request: requested=1, available=0/);
  });

  it('keeps exclusive CPUs across a restart of the kubelet and releases the CPUs with their pod', async () => {
    await lab.halt();
    await lab.boot(api.access());
    const again = JSON.parse(await readFile(join(lab.directory, 'cpu_manager_state'), 'utf8'));
    assert.deepEqual(again.entries, { 'uid-exclusive': { main: '1' } });
    assert.equal(await cpusOf('exclusive'), '1');
    const exclusive = api.get(resources.pods, 'default/exclusive');
    assert.ok(exclusive !== undefined);
    api.put(resources.pods, {
      ...exclusive,
      metadata: { ...exclusive.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 1 },
    });
    await eventually('CPUs shared again', async () => ((await cpusOf('shared')) === '0-1' ? true : undefined));
  });

  it('gives CPUs and requests of a terminated pod to the next pod while volumes are still being released', async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const memory = [{ name: 'scratch', emptyDir: { medium: 'Memory' } }];
    const mounted = shell('exit 0', { ...amounts('1'), volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] });
    try {
      lab.beforeUnmount = () => held;
      put('ended', { restartPolicy: 'Never', volumes: memory, containers: [mounted] });
      await seen('ended', over);
      put('successor', { restartPolicy: 'Never', containers: [shell('exit 0', amounts('1'))] });
      const successor = await seen('successor', over);
      assert.deepEqual([successor.status?.phase, successor.status?.message], ['Succeeded', undefined]);
    } finally {
      lab.beforeUnmount = async () => {};
      release();
    }
  });

  it('reports a failed pod as Failed only when its containers have ended', async () => {
    const phases: string[] = [];
    put('slow-to-stop', {
      terminationGracePeriodSeconds: 30,
      activeDeadlineSeconds: 2,
      containers: [shell("trap 'sleep 2; exit 0' TERM; sleep 1000 & wait")],
    });
    const failed = await seen('slow-to-stop', (pod) => {
      phases.push(pod.status?.phase ?? '');
      return over(pod);
    });
    assert.equal(failed.status?.reason, 'DeadlineExceeded');
    const [main] = failed.status?.containerStatuses ?? [];
    assert.equal(main?.state?.running, undefined, JSON.stringify(main?.state));
    assert.ok(phases.includes('Running'));
  });

  it('enforces pod-level limits on all containers together', async () => {
    put('whole', { resources: { limits: { memory: '48Mi', cpu: '500m' } }, containers: [idle()] });
    await seen('whole', running);
    const container = (await lab.runtime().listContainers()).find(
      (each) => each.labels['io.kubernetes.pod.uid'] === 'uid-whole',
    );
    const groups = await readFile(`/proc/${container?.pid}/cgroup`, 'utf8');
    const memory = /^\d+:memory:(.*)$/m.exec(groups)?.[1];
    const [mount, file] =
      memory === undefined ? ['/sys/fs/cgroup', 'memory.max'] : ['/sys/fs/cgroup/memory', 'memory.limit_in_bytes'];
    const path = memory ?? /^0::(.*)$/m.exec(groups)?.[1] ?? '';
    const limit = await readFile(join(mount, path, '..', file), 'utf8');
    assert.equal(Number(limit), 48 * 1024 ** 2);
  });

  it('rejects a runtime handler that does not exist', async () => {
    api.put(resources.runtimeClasses, { metadata: { name: 'sandboxed' }, handler: 'kata' });
    api.put(resources.runtimeClasses, { metadata: { name: 'plain' }, handler: 'runc' });
    put('kata', { runtimeClassName: 'sandboxed', containers: [idle()] });
    put('plain', { runtimeClassName: 'plain', containers: [idle()] });
    put('classless', { runtimeClassName: 'missing', containers: [idle()] });
    await seen('plain', running);
    const event = (pod: string): Promise<string> =>
      eventually(
        `event of ${pod}`,
        async () =>
          api.events.find(({ object, reason }) => object.endsWith(`/${pod}`) && reason === 'FailedCreatePodSandBox')
            ?.message,
      );
    assert.equal(
      await event('kata'),
      'Failed to create pod sandbox: failed to get sandbox runtime: no runtime for "kata" is configured',
    );
    assert.match(await event('classless'), /RuntimeClass "missing" not found/);
    assert.equal(api.get(resources.pods, 'default/kata')?.status?.phase, 'Pending');
  });

  it('a container follows its own restart rules in a pod with restartPolicy Never', async () => {
    const count = 'n=$(cat /data/n 2>/dev/null || echo 0); echo $((n+1)) > /data/n; ';
    const volumeMounts = [{ name: 'data', mountPath: '/data' }];
    const rule = { action: 'Restart', exitCodes: { operator: 'In', values: [42] } };
    put('ruled', {
      restartPolicy: 'Never',
      volumes: [{ name: 'data', emptyDir: {} }],
      containers: [
        shell(`${count} [ $n -lt 1 ] && exit 42; exit 3`, {
          volumeMounts,
          restartPolicy: 'Never',
          restartPolicyRules: [rule],
        }),
      ],
    });
    const { status } = await seen('ruled', over);
    assert.equal(status?.phase, 'Failed');
    assert.equal(status?.containerStatuses?.[0]?.restartCount, 1);
    assert.equal(status?.containerStatuses?.[0]?.state?.terminated?.exitCode, 3);
    put('own', { restartPolicy: 'Always', containers: [shell('exit 0', { restartPolicy: 'Never' })] });
    assert.equal((await seen('own', over)).status?.phase, 'Succeeded');
  });

  it('runs TCP hooks and reports a hook that cannot connect', async () => {
    const port = (number: number): object => ({ lifecycle: { postStart: { tcpSocket: { port: number } } } });
    const listener = 'nc -l -p 38471 & sleep 1000 & wait';
    const hook = { exec: { command: ['/bin/sh', '-c', 'sleep 0.3'] } };
    put('tcp', { containers: [shell(listener, { name: 'first', lifecycle: { postStart: hook } }), idle(port(38471))] });
    await seen('tcp', running);
    put('refused', { restartPolicy: 'Never', containers: [idle(port(38472))] });
    await seen('refused', () =>
      api.events.some(({ object, reason }) => object.endsWith('/refused') && reason === 'FailedPostStartHook'),
    );
  });

  it('filters system calls with a seccomp profile of the host', async () => {
    const profiles = join(lab.directory, 'seccomp');
    await mkdir(profiles, { recursive: true });
    const syscalls = [{ names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO', errnoRet: 1 }];
    await writeFile(join(profiles, 'no-mkdir.json'), JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW', syscalls }));
    const with_ = (localhostProfile: string): object => ({
      securityContext: { seccompProfile: { type: 'Localhost', localhostProfile } },
    });
    put('filtered', { restartPolicy: 'Never', containers: [shell('! mkdir /tmp/x', with_('no-mkdir.json'))] });
    assert.equal((await seen('filtered', over)).status?.phase, 'Succeeded');
    put('unfiltered', { restartPolicy: 'Never', containers: [shell('true', with_('missing.json'))] });
    const waiting = (pod: Pod): boolean =>
      pod.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CreateContainerError';
    const { status } = await seen('unfiltered', waiting);
    assert.match(
      status?.containerStatuses?.[0]?.state?.waiting?.message ?? '',
      /cannot load seccomp profile ".*missing/,
    );
  });
});
