/** Probes, hooks, init containers, restarts and termination of pods. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { eventually, sleep } from '../harness.ts';
import { idle, isReady, type PodLab, pod, restartsOf, shell } from './lab.ts';

const LIMIT = { timeout: 60_000 };
const scratchVolume = { name: 'scratch', emptyDir: {} };
const scratchMount = { volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] };

/** A gRPC health server that responds SERVING until its standard input changes that. */
const GRPC_HEALTH_SERVER = `
import { createServer } from 'node:http2';
let serving = 1;
process.stdin.on('data', () => { serving = 2; });
createServer().on('stream', (stream) => {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.resume();
  stream.on('end', () => stream.end(Buffer.from([0, 0, 0, 0, 2, 8, serving])));
}).listen(Number(process.argv[2]), () => console.log('listening'));
`;

export function probeTests(lab: () => PodLab): void {
  test('restarts a container with a failing exec liveness probe and reports the failure', LIMIT, async () => {
    const exec = { command: ['cat', '/tmp/ok'] };
    const alive = shell('touch /tmp/ok; sleep 1; rm /tmp/ok; exec sleep 1000', {
      livenessProbe: { exec, periodSeconds: 1, failureThreshold: 2 },
    });
    await lab().apply(pod('liveness', { containers: [alive] }));
    await lab().until('liveness', 'restarted', (each) => restartsOf(each) >= 1);
    await lab().event('liveness', 'Unhealthy', /^Liveness probe failed: cat: .*\/tmp\/ok/);
    await lab().event('liveness', 'Killing', /^Container main failed liveness probe, will be restarted$/);
    await lab().remove('liveness');
  });

  test('an HTTP readiness probe adds a pod to the endpoints and removes the pod', LIMIT, async () => {
    const web = shell('mkdir /tmp/www; echo yes > /tmp/www/ready; exec httpd -f -p 8080 -h /tmp/www', {
      ports: [{ name: 'http', containerPort: 8080 }],
      readinessProbe: { httpGet: { path: '/ready', port: 'http' }, periodSeconds: 1, failureThreshold: 1 },
    });
    await lab().apply(pod('readiness', { containers: [web] }, { labels: { app: 'readiness' } }), {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'readiness', namespace: 'default' },
      spec: { selector: { app: 'readiness' }, ports: [{ port: 80, targetPort: 'http' }] },
    });
    const ready = await lab().ready('readiness');
    const inEndpoints = async (): Promise<string> =>
      lab().kubectl('get', 'endpoints', 'readiness', '-o', 'jsonpath={.subsets[*].addresses[*].ip}');
    await eventually('in the endpoints', 5_000, async () =>
      (await inEndpoints()) === ready.status?.podIP ? true : undefined,
    );
    await lab().exec('readiness', 'rm', '/tmp/www/ready');
    const unready = await lab().until('readiness', 'not ready', (each) => !isReady(each));
    const reasons = unready.status?.conditions?.map((each) => `${each.type}=${each.status} ${each.message ?? ''}`);
    assert.ok(reasons?.includes('Ready=False containers with unready status: [main]'), String(reasons));
    await lab().event('readiness', 'Unhealthy', /^Readiness probe failed: HTTP probe failed with statuscode: 404$/);
    await eventually('out of the endpoints', 5_000, async () => ((await inEndpoints()) === '' ? true : undefined));
    await lab().exec('readiness', 'touch', '/tmp/www/ready');
    assert.equal(restartsOf(await lab().ready('readiness')), 0);
    await lab().remove('readiness');
  });

  test('a TCP startup probe delays other probes, and its failure restarts the container', LIMIT, async () => {
    const slow = shell('sleep 2; touch /tmp/up; exec httpd -f -p 8080 -h /tmp', {
      startupProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1, failureThreshold: 30 },
      livenessProbe: { exec: { command: ['cat', '/tmp/up'] }, periodSeconds: 1, failureThreshold: 1 },
    });
    const never = shell('exec sleep 1000', {
      startupProbe: { tcpSocket: { port: 9 }, periodSeconds: 1, failureThreshold: 2 },
    });
    await lab().apply(pod('startup', { containers: [slow] }), pod('startup-never', { containers: [never] }));
    const early = await lab().until(
      'startup',
      'running',
      (each) => restartsOf(each) >= 0 && each.status?.phase === 'Running',
    );
    assert.equal(early.status?.containerStatuses?.[0]?.started, false);
    assert.equal(isReady(early), false);
    const up = await lab().ready('startup');
    assert.equal(up.status?.containerStatuses?.[0]?.started, true);
    assert.equal(restartsOf(up), 0, 'the liveness probe would have failed before the start was over');
    await lab().until('startup-never', 'restarted', (each) => restartsOf(each) >= 1);
    await lab().event('startup-never', 'Killing', /failed startup probe, will be restarted/);
    await lab().remove('startup', 'startup-never');
  });

  test('probes the gRPC health service of a container', LIMIT, async () => {
    const script = join(lab().scratch, 'health.mjs');
    await writeFile(script, GRPC_HEALTH_SERVER);
    const port = 18_551;
    const server = lab().appliance.spawnInside(process.execPath, [script, String(port)]);
    try {
      await new Promise((resolve) => server.stdout?.once('data', resolve));
      const probed = idle({ readinessProbe: { grpc: { port }, periodSeconds: 1, failureThreshold: 1 } });
      await lab().apply(pod('grpc', { hostNetwork: true, containers: [probed] }));
      await lab().ready('grpc');
      server.stdin?.write('stop serving\n');
      await lab().until('grpc', 'not ready', (each) => !isReady(each));
      await lab().event(
        'grpc',
        'Unhealthy',
        /^Readiness probe failed: service unhealthy \(responded with "NOT_SERVING"\)$/,
      );
    } finally {
      server.kill('SIGKILL');
    }
    await lab().remove('grpc');
  });
}

export function hookTests(lab: () => PodLab): void {
  test('runs exec and HTTP hooks and respects the grace period', LIMIT, async () => {
    const directory = join(lab().scratch, 'hooks');
    const host = { name: 'host', hostPath: { path: directory, type: 'DirectoryOrCreate' } };
    const hostMount = { volumeMounts: [{ name: 'host', mountPath: '/host' }] };
    const execHooks = shell('while [ ! -e /tmp/started ]; do sleep 0.1; done; echo saw-start; sleep 1000', {
      ...hostMount,
      lifecycle: {
        postStart: { exec: { command: ['touch', '/tmp/started'] } },
        preStop: { exec: { command: ['/bin/sh', '-c', 'sleep 0.5; echo stopped > /host/exec'] } },
      },
    });
    const httpHook = shell('exec httpd -f -p 8080 -h /tmp', {
      ...hostMount,
      lifecycle: { preStop: { httpGet: { path: '/bye', port: 80 } } },
    });
    // Records the requests to port 80 of the second container.
    const listener = shell('nc -l -p 80 > /host/http; sleep 1000', { name: 'listener', ...hostMount });
    const stubborn = shell("trap '' TERM; echo deaf; while :; do sleep 1; done");
    const sleeper = idle({ lifecycle: { preStop: { sleep: { seconds: 2 } } } });
    await lab().apply(
      pod('hooks-exec', { volumes: [host], containers: [execHooks], terminationGracePeriodSeconds: 5 }),
      pod('hooks-http', { volumes: [host], containers: [httpHook, listener], terminationGracePeriodSeconds: 2 }),
      pod('hooks-deaf', { containers: [stubborn], terminationGracePeriodSeconds: 3 }),
      pod('hooks-sleep', { containers: [sleeper], terminationGracePeriodSeconds: 10 }),
    );
    for (const name of ['hooks-exec', 'hooks-http', 'hooks-deaf', 'hooks-sleep']) await lab().ready(name);
    await sleep(300);
    assert.equal(await lab().logs('hooks-exec'), 'saw-start\n');
    const began = performance.now();
    await lab().kubectl('delete', 'pod', '--wait=false', 'hooks-exec', 'hooks-http', 'hooks-deaf', 'hooks-sleep');
    const took = async (name: string): Promise<number> => {
      await lab().gone(name, 20_000);
      return performance.now() - began;
    };
    const [, , deaf, slept] = await Promise.all(['hooks-exec', 'hooks-http', 'hooks-deaf', 'hooks-sleep'].map(took));
    assert.ok(deaf !== undefined && deaf >= 2_900 && deaf < 8_000, `${deaf} ms for a grace period of 3 s`);
    assert.ok(slept !== undefined && slept >= 1_900 && slept < 7_000, `${slept} ms for a hook that sleeps 2 s`);
    assert.equal(await read(join(directory, 'exec')), 'stopped\n');
    assert.match(await read(join(directory, 'http')), /^GET \/bye HTTP\/1.1\r\n[\s\S]*kube-lifecycle\//i);
  });

  test('ends a container whose postStart hook fails, and only reports a failed preStop hook', LIMIT, async () => {
    await lab().apply(
      pod('hook-fails', {
        restartPolicy: 'Never',
        containers: [idle({ lifecycle: { postStart: { exec: { command: ['/bin/sh', '-c', 'echo no; exit 7'] } } } })],
      }),
      pod('prestop-fails', {
        containers: [idle({ lifecycle: { preStop: { exec: { command: ['false'] } } } })],
      }),
    );
    await lab().over('hook-fails');
    await lab().event('hook-fails', 'FailedPostStartHook');
    await lab().ready('prestop-fails');
    await lab().kubectl('delete', 'pod', '--wait=false', 'prestop-fails');
    await lab().event('prestop-fails', 'FailedPreStopHook', /exited with 1/);
    await lab().gone('prestop-fails');
    await lab().remove('hook-fails');
  });
}

export function containerOrderTests(lab: () => PodLab): void {
  test(
    'init containers run in sequence, sidecars keep running, and the pod completes without the sidecars',
    LIMIT,
    async () => {
      const note = (name: string): string => `echo ${name} >> /scratch/order`;
      await lab().apply(
        pod('ordered', {
          restartPolicy: 'Never',
          volumes: [scratchVolume],
          initContainers: [
            shell(`sleep 0.3; ${note('first')}`, { name: 'first', ...scratchMount }),
            shell(`${note('sidecar')}; trap 'echo sidecar-ends; exit 0' TERM; touch /scratch/up; sleep 1000 & wait`, {
              name: 'sidecar',
              restartPolicy: 'Always',
              startupProbe: { exec: { command: ['cat', '/scratch/up'] }, periodSeconds: 1 },
              ...scratchMount,
            }),
            shell(`test -e /scratch/up && ${note('last')}`, { name: 'last', ...scratchMount }),
          ],
          containers: [shell(`${note('main')}; cat /scratch/order`, scratchMount)],
        }),
      );
      const over = await lab().over('ordered');
      assert.equal(over.status?.phase, 'Succeeded');
      assert.equal(await lab().logs('ordered', '-c', 'main'), 'first\nsidecar\nlast\nmain\n');
      assert.equal(await lab().logs('ordered', '-c', 'sidecar'), 'sidecar-ends\n');
      assert.equal(over.status?.containerStatuses?.[0]?.state?.terminated?.reason, 'Completed');
      assert.deepEqual(
        over.status?.initContainerStatuses?.map((status) => status.state?.terminated?.exitCode),
        [0, 0, 0],
      );
      assert.equal(await lab().shownStatus('ordered'), 'Completed');
      await lab().remove('ordered');
    },
  );

  test('reports Init:Error or Init:CrashLoopBackOff for a failing init container', LIMIT, async () => {
    const failing = (name: string, restartPolicy: 'Never' | 'Always'): Pod =>
      pod(name, { restartPolicy, initContainers: [shell('exit 4', { name: 'prepare' })] });
    await lab().apply(failing('init-never', 'Never'), failing('init-always', 'Always'));
    const over = await lab().over('init-never');
    assert.equal(over.status?.phase, 'Failed');
    assert.equal(over.status?.initContainerStatuses?.[0]?.state?.terminated?.exitCode, 4);
    assert.equal(over.status?.containerStatuses?.[0]?.state?.waiting?.reason, 'PodInitializing');
    assert.equal(await lab().shownStatus('init-never'), 'Init:Error');
    const looping = await lab().until(
      'init-always',
      'in back-off',
      (each) => each.status?.initContainerStatuses?.[0]?.state?.waiting?.reason === 'CrashLoopBackOff',
    );
    assert.equal(looping.status?.phase, 'Pending');
    assert.equal(await lab().shownStatus('init-always'), 'Init:CrashLoopBackOff');
    await lab().event(
      'init-always',
      'BackOff',
      /^Back-off restarting failed container prepare in pod init-always_default\(/,
    );
    await lab().remove('init-never', 'init-always');
  });

  test('OnFailure restarts a container until it succeeds, and Never keeps a failed container', LIMIT, async () => {
    const second = shell('test -e /scratch/again && exit 0; touch /scratch/again; exit 5', scratchMount);
    await lab().apply(
      pod('on-failure', { restartPolicy: 'OnFailure', volumes: [scratchVolume], containers: [second] }),
      pod('never', { restartPolicy: 'Never', containers: [shell('echo out; exit 3')] }),
      pod('deadline', { activeDeadlineSeconds: 1 }),
    );
    const succeeded = await lab().over('on-failure');
    assert.equal(succeeded.status?.phase, 'Succeeded');
    assert.equal(restartsOf(succeeded), 1);
    assert.equal(succeeded.status?.containerStatuses?.[0]?.lastState?.terminated?.exitCode, 5);
    const failed = await lab().over('never');
    assert.equal(failed.status?.phase, 'Failed');
    assert.equal(failed.status?.containerStatuses?.[0]?.state?.terminated?.reason, 'Error');
    assert.equal(await lab().logs('never'), 'out\n');
    assert.equal(await lab().shownStatus('never'), 'Error');
    const late = await lab().over('deadline');
    assert.equal(late.status?.reason, 'DeadlineExceeded');
    await lab().remove('on-failure', 'never', 'deadline');
  });

  test('takes termination messages from the file, or from the log after a failure', LIMIT, async () => {
    await lab().apply(
      pod('last-words', {
        restartPolicy: 'Never',
        containers: [
          shell('echo -n written > /tmp/why; exit 1', { name: 'file', terminationMessagePath: '/tmp/why' }),
          shell('echo -n anybody > /tmp/why', {
            name: 'user',
            terminationMessagePath: '/tmp/why',
            securityContext: { runAsUser: 10_000 },
          }),
          shell('echo one; echo two; exit 1', { name: 'log', terminationMessagePolicy: 'FallbackToLogsOnError' }),
          shell('echo fine', { name: 'quiet', terminationMessagePolicy: 'FallbackToLogsOnError' }),
        ],
      }),
    );
    const over = await lab().over('last-words');
    const output = over.status?.containerStatuses?.map((status) => [status.name, status.state?.terminated?.message]);
    assert.deepEqual(output, [
      ['file', 'written'],
      ['log', 'one\ntwo\n'],
      ['quiet', undefined],
      ['user', 'anybody'],
    ]);
    await lab().remove('last-words');
  });
}

const read = (path: string): Promise<string> => readFile(path, 'utf8');
