/** Failures: components are killed, run out of memory, are deleted or restarted. No acknowledged write may be lost. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Appliance, eventually, sleep } from './harness.ts';
import { helloImage, importHelloImage } from './images.ts';

let appliance: Appliance;

before(async () => {
  appliance = await Appliance.create();
  await appliance.start();
  await importHelloImage(appliance, appliance.root);
});

after(async () => {
  await appliance?.stop();
});

const pod = (name: string, command: string, extra = ''): string => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ${helloImage}
    command: [/bin/sh, -c, ${JSON.stringify(command)}]
    ${extra}
`;

async function componentPid(component: 'etcd' | 'api' | 'controllers'): Promise<number> {
  const pattern = new RegExp(`hyperedge\\S* ${component} `);
  return eventually(
    `${component} process`,
    20_000,
    async () =>
      (await appliance.processes()).find(
        (each) => pattern.test(each.command) && !/conmon|runc/.test(each.command.split(' ')[0] ?? ''),
      )?.pid,
  );
}

const containerId = async (name: string): Promise<string> =>
  (await appliance.must(['get', 'pod', name, '-o', 'jsonpath={.status.containerStatuses[0].containerID}'])).replace(
    /^.*:\/\//,
    '',
  );

async function containerPids(name: string): Promise<number[]> {
  const id = await containerId(name);
  const pids: number[] = [];
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const cgroup = await readFile(`/proc/${entry}/cgroup`, 'utf8').catch(() => '');
    if (id !== '' && cgroup.includes(id)) pids.push(Number(entry));
  }
  return pids.sort((left, right) => left - right);
}

const restarts = async (name: string): Promise<number> =>
  Number(await appliance.must(['get', 'pod', name, '-o', 'jsonpath={.status.containerStatuses[0].restartCount}']));

test('applies memory, CPU and PID limits of a container in the kernel', async () => {
  await appliance.must(['apply', '-f', '-'], {
    input: pod('limited', 'sleep 1000', 'resources: {limits: {memory: 32Mi, cpu: 250m}}'),
  });
  await appliance.must(['wait', 'pod/limited', '--for=condition=Ready', '--timeout=30s']);
  const [pid] = await containerPids('limited');
  const groups = new Map(
    (await readFile(`/proc/${pid}/cgroup`, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => {
        const [, controllers = '', path = ''] = line.split(':');
        return [controllers, path] as const;
      }),
  );
  const unified = groups.get('memory') === undefined;
  const base = unified ? '/sys/fs/cgroup' : '/sys/fs/cgroup/memory';
  const path = groups.get(unified ? '' : 'memory') ?? '';
  assert.match(path, /^\/kubepods(\.slice)?\//);
  const uid = await appliance.must(['get', 'pod', 'limited', '-o', 'jsonpath={.metadata.uid}']);
  assert.ok(path.replaceAll('_', '-').includes(`pod${uid}`), path);
  const limit = await readFile(join(base, path, unified ? 'memory.max' : 'memory.limit_in_bytes'), 'utf8');
  assert.equal(limit.trim(), String(32 * 1024 * 1024));
  if (!unified) {
    const quota = await readFile(join('/sys/fs/cgroup/cpu', groups.get('cpu') ?? '', 'cpu.cfs_quota_us'), 'utf8');
    assert.equal(quota.trim(), '25000');
  }
  await appliance.must(['delete', 'pod', 'limited', '--now']);
});

test('restarts an OOM-killed container with back-off and reports OOMKilled', async () => {
  await appliance.must(['apply', '-f', '-'], {
    input: pod('hungry', 'sleep 1; tail /dev/zero', 'resources: {limits: {memory: 24Mi}}'),
  });
  await eventually('OOMKilled', 60_000, async () => {
    const status = JSON.parse(await appliance.must(['get', 'pod', 'hungry', '-o', 'json'])).status;
    const container = status.containerStatuses?.[0];
    const reason = container?.lastState?.terminated?.reason ?? container?.state?.terminated?.reason;
    return reason === 'OOMKilled' && container.restartCount >= 1 ? true : undefined;
  });
  await eventually('back-off', 60_000, async () =>
    /CrashLoopBackOff/.test(await appliance.must(['get', 'pod', 'hungry', '--no-headers'])) ? true : undefined,
  );
  await appliance.must(['delete', 'pod', 'hungry', '--now']);
});

test('restarts a container whose process was killed', async () => {
  await appliance.must(['apply', '-f', '-'], { input: pod('steady', 'sleep 1000') });
  await appliance.must(['wait', 'pod/steady', '--for=condition=Ready', '--timeout=30s']);
  const [pid = 0] = await containerPids('steady');
  assert.ok(pid > 1);
  process.kill(pid, 'SIGKILL');
  await eventually('restart', 30_000, async () => ((await restarts('steady')) === 1 ? true : undefined));
  await appliance.must(['wait', 'pod/steady', '--for=condition=Ready', '--timeout=30s']);
});

test('restarts a killed API server, and watches resume', async () => {
  const watch = appliance.spawnInside('kubectl', ['get', 'cm', '-w', '--no-headers']);
  let seen = '';
  watch.stdout?.setEncoding('utf8').on('data', (text: string) => {
    seen += text;
  });
  try {
    await eventually('watch', 10_000, () => (seen.includes('kube-root-ca.crt') ? true : undefined));
    const before = await componentPid('api');
    process.kill(before, 'SIGKILL');
    await eventually('API again', 30_000, async () =>
      (await appliance.kubectl(['get', '--raw', '/readyz'])).stdout === 'ok' ? true : undefined,
    );
    assert.notEqual(await componentPid('api'), before);
    // The node's own components resumed their watches: a new pod is scheduled and runs.
    await appliance.must(['apply', '-f', '-'], { input: pod('after-api', 'sleep 1000') });
    await appliance.must(['wait', 'pod/after-api', '--for=condition=Ready', '--timeout=60s']);
    await appliance.must(['delete', 'pod', 'after-api', '--now']);
  } finally {
    watch.kill('SIGKILL');
  }
});

test('loses no acknowledged write when etcd is killed under load', async () => {
  const acknowledged: string[] = [];
  let stop = false;
  const writer = (async () => {
    for (let index = 0; !stop; index++) {
      const name = `journal-${index}`;
      const made = await appliance.kubectl(['create', 'cm', name, `--from-literal=n=${index}`], { timeoutMs: 20_000 });
      if (made.code === 0) acknowledged.push(name);
      else await sleep(100);
    }
  })();
  for (let round = 0; round < 2; round++) {
    await sleep(1_500);
    process.kill(await componentPid('etcd'), 'SIGKILL');
    await sleep(500);
    await eventually('API ready again', 60_000, async () =>
      (await appliance.kubectl(['get', '--raw', '/readyz'])).stdout === 'ok' ? true : undefined,
    );
  }
  stop = true;
  await writer;
  assert.ok(acknowledged.length > 5, `${acknowledged.length} writes`);
  const present = new Set((await appliance.must(['get', 'cm', '-o', 'name'])).trim().split('\n'));
  assert.deepEqual(
    acknowledged.filter((name) => !present.has(`configmap/${name}`)),
    [],
  );
});

test('recovers a repeatedly killed control plane in seconds, and restarts on request without back-off', async () => {
  for (let round = 0; round < 3; round++) {
    process.kill(await componentPid('api'), 'SIGKILL');
    await sleep(200);
    const begin = performance.now();
    await eventually('API again', 8_000, async () =>
      (await appliance.kubectl(['get', '--raw', '/readyz'])).stdout === 'ok' ? true : undefined,
    );
    assert.ok(performance.now() - begin < 8_000);
  }
  const before = await componentPid('api');
  process.kill(before, 'SIGKILL');
  await sleep(300);
  const status = await appliance.hyperedge(['status', '--root', appliance.root]);
  assert.match(status.stdout, /NotReady/);
  const begin = performance.now();
  const restarted = await appliance.hyperedge(['master-restart', 'api', '--root', appliance.root]);
  assert.deepEqual([restarted.code, restarted.stdout], [0, 'api restarted\n'], restarted.stderr);
  assert.ok(performance.now() - begin < 8_000, 'the restart skips the back-off and waits until the component is ready');
  assert.notEqual(await componentPid('api'), before);
  await eventually('API again', 8_000, async () =>
    (await appliance.kubectl(['get', '--raw', '/readyz'])).stdout === 'ok' ? true : undefined,
  );
});

test('pods and control plane continue when the host process is killed, and the next start adopts them', async () => {
  const before = await containerPids('steady');
  const components = await Promise.all([componentPid('etcd'), componentPid('api'), componentPid('controllers')]);
  const restartsBefore = await restarts('steady');
  await appliance.halt('SIGKILL');
  assert.equal(await appliance.must(['get', '--raw', '/readyz']), 'ok');
  assert.deepEqual(await containerPids('steady'), before);
  await appliance.start();
  assert.deepEqual(
    await Promise.all([componentPid('etcd'), componentPid('api'), componentPid('controllers')]),
    components,
  );
  await appliance.must(['wait', 'pod/steady', '--for=condition=Ready', '--timeout=30s']);
  assert.deepEqual(await containerPids('steady'), before);
  assert.equal(await restarts('steady'), restartsBefore);
});

test('a second stop signal skips the grace period and leaves no processes or mounts', {
  timeout: 360_000,
}, async () => {
  await appliance.must(['apply', '-f', '-'], {
    input: pod('stubborn', "trap '' TERM; while :; do sleep 1; done").replace('Seconds: 1', 'Seconds: 30'),
  });
  await appliance.must(['wait', 'pod/stubborn', '--for=condition=Ready', '--timeout=180s'], { timeoutMs: 190_000 });
  const begin = performance.now();
  const ended = appliance.halt('SIGINT');
  await sleep(1_500);
  process.kill(appliance.hostPid, 'SIGINT');
  await ended;
  const tookMs = performance.now() - begin;
  const left = await appliance.processes();
  // The next tests need a running appliance, also when an assertion fails.
  await appliance.start();
  await appliance.must(['delete', 'pod', 'stubborn', '--now']);
  assert.ok(tookMs < 10_000, `${tookMs} ms`);
  assert.deepEqual(
    left.map((each) => each.command),
    [],
  );
});

test('ends the pods on a regular stop, and starts again with all data', async () => {
  await appliance.must(['create', 'cm', 'remembered', '--from-literal=k=v']);
  await appliance.halt('SIGTERM');
  const left = await appliance.processes();
  await appliance.start();
  assert.deepEqual(
    left.map((each) => each.command),
    [],
  );
  assert.equal(await appliance.must(['get', 'cm', 'remembered', '-o', 'jsonpath={.data.k}']), 'v');
  await eventually('pod runs again', 60_000, async () => {
    const seen = JSON.parse(await appliance.must(['get', 'pod', 'steady', '-o', 'json']));
    if (seen.status.containerStatuses[0].ready === true) return true;
    throw new Error(`${JSON.stringify(seen.status)}\n${appliance.output.slice(-4_000)}`);
  });
});
