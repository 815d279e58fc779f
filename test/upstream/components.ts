/**
 * Runs upstream's controller manager, scheduler, kubelet and kube-proxy of Kubernetes 1.20 with this project's API
 * server and store. Not part of `npm test`: it takes some minutes and needs root, containerd,
 * containernetworking-plugins, iptables and conntrack (Debian packages), and upstream's programs, built from their
 * sources:
 *
 *   npm run test:upstream:components -- --programs DIR [--baseline]
 *
 * DIR contains kube-controller-manager, kube-scheduler, kubelet and kube-proxy. With Go 1.18 or later, build with
 * `-overlay` and reflect2 1.0.2: programs with the vendored reflect2 1.0.1 panic when they serialize maps. `--baseline`
 * runs the same with upstream's kube-apiserver (also in DIR) and Debian's etcd. The exit code is 1 if any result was
 * unexpected.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sleep } from '../e2e/harness.ts';
import { stopWhenInterrupted } from '../lab/support/interrupted.ts';
import { kubectls } from '../support/kubectls.ts';
import { ForeignCluster, NAMESPACE } from './foreign/cluster.ts';
import { forever, labelled, object, selecting, WORKLOADS } from './foreign/workloads.ts';

const { values: flags } = parseArgs({
  options: { programs: { type: 'string' }, baseline: { type: 'boolean', default: false } },
});

let failures = 0;
const report = (what: string, problem?: string): void => {
  if (problem !== undefined) failures += 1;
  console.log(problem === undefined ? `ok    ${what}` : `FAIL  ${what}: ${problem.trim().slice(0, 400)}`);
};

class Steps {
  readonly #cluster: ForeignCluster;
  constructor(cluster: ForeignCluster) {
    this.#cluster = cluster;
  }

  /** Waits until kubectl prints the expected output, for at most `seconds`. */
  async expect(
    what: string,
    seconds: number,
    expected: RegExp,
    args: readonly string[],
    input?: string,
    program?: string,
  ): Promise<void> {
    const deadline = performance.now() + seconds * 1000;
    for (;;) {
      const { stdout, stderr } = await this.#cluster.kubectl(['-n', NAMESPACE, ...args], input, program);
      if (expected.test(stdout + stderr)) return report(what);
      if (performance.now() > deadline) return report(what, `${expected} is not in: ${stdout}${stderr}`);
      await sleep(500);
    }
  }

  shows(what: string, seconds: number, expected: RegExp, of: string, path: string): Promise<void> {
    return this.expect(what, seconds, expected, ['get', ...of.split(' '), '-o', `jsonpath=${path}`]);
  }
}

async function workloads(cluster: ForeignCluster, steps: Steps): Promise<void> {
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: WORKLOADS });
  await steps.expect(
    'objects are taken',
    0,
    /deployment\.apps\/web created[\s\S]*quota created/,
    ['create', '-f', '-'],
    list,
  );
  await steps.shows('Deployment', 90, /^2 2$/, 'deploy web', '{.status.readyReplicas} {.status.availableReplicas}');
  await steps.shows('StatefulSet with a claim', 60, /^1$/, 'sts db', '{.status.readyReplicas}');
  await steps.shows('claim is bound', 10, /^Bound local-0$/, 'pvc data-db-0', '{.status.phase} {.spec.volumeName}');
  await steps.shows('DaemonSet', 30, /^1$/, 'ds agent', '{.status.numberReady}');
  await steps.shows('Job that fails', 60, /BackoffLimitExceeded/, 'job bad', '{.status.conditions[*].reason}');
  await steps.expect('Job goes after it has finished', 90, /NotFound/, ['get', 'job', 'once']);
  await steps.shows(
    'HPA without metrics',
    30,
    /FailedGetResourceMetric|^$/,
    'hpa web',
    '{.status.conditions[?(@.status=="False")].reason}',
  );
  await steps.shows('quota is reckoned', 30, /"count\/deployments\.apps":"1"/, 'quota quota', '{.status.used}');
  await steps.shows(
    'EndpointSlice',
    30,
    /^10\.\S+ 10\.\S+$/,
    'endpointslices -l kubernetes.io/service-name=web',
    '{.items[*].endpoints[*].addresses[0]}',
  );
  const address = (await cluster.kubectl(['-n', NAMESPACE, 'get', 'svc', 'web', '-o', 'jsonpath={.spec.clusterIP}']))
    .stdout;
  const { stdout } = await cluster.inside('curl', [
    '-s',
    '--retry',
    '10',
    '--retry-all-errors',
    '-m',
    '5',
    `http://${address}/`,
  ]);
  report('Service through kube-proxy', stdout === 'hello\n' ? undefined : stdout);
  await steps.shows('CronJob', 90, /^20/, 'cronjob tick', '{.status.lastScheduleTime}');
}

async function evictions(cluster: ForeignCluster, steps: Steps): Promise<void> {
  const pod = (version: string, name: string) =>
    JSON.stringify({ apiVersion: `policy/${version}`, kind: 'Eviction', metadata: { name, namespace: NAMESPACE } });
  const path = (name: string) => `/api/v1/namespaces/${NAMESPACE}/pods/${name}/eviction`;
  const evict = (name: string) => ['create', '--raw', path(name), '-f', '-'];
  await steps.shows('budget', 30, /^2 0$/, 'pdb web', '{.status.currentHealthy} {.status.disruptionsAllowed}');
  const names = ['get', 'pod', '-n', NAMESPACE, '-l', 'app=web', '-o', 'jsonpath={.items[0].metadata.name}'];
  const name = (await cluster.kubectl(names)).stdout;
  await steps.expect('eviction against the budget', 0, /disruption budget/, evict(name), pod('v1beta1', name));
  await steps.expect('scale', 0, /scaled/, ['scale', 'deploy/web', '--replicas=3']);
  await steps.shows('budget allows', 60, /^3 1$/, 'pdb web', '{.status.currentHealthy} {.status.disruptionsAllowed}');
  await steps.expect('eviction within the budget', 0, /Success/, evict(name), pod('v1beta1', name));
}

async function streams(cluster: ForeignCluster, steps: Steps): Promise<void> {
  // Serving certificates are only approved by an administrator.
  await steps.expect('serving request of the kubelet', 60, /kubelet-serving/, ['get', 'csr']);
  const names = (await cluster.kubectl(['get', 'csr', '-o', 'name'])).stdout.split('\n').filter((each) => each !== '');
  await cluster.kubectl(['certificate', 'approve', ...names]);
  const db = ['db-0', '--'];
  for (const { label, path } of kubectls()) {
    await steps.expect(`exec (kubectl ${label})`, 60, /^said\n$/, ['exec', ...db, 'echo', 'said'], undefined, path);
    const fed = await cluster.kubectl(['-n', NAMESPACE, 'exec', '-i', ...db, 'cat'], 'fed', path);
    report(`exec with input (kubectl ${label})`, fed.stdout === 'fed' ? undefined : fed.stderr);
  }
  await steps.expect('logs', 20, /started/, ['logs', 'deploy/web']);
  await steps.expect('proxy to a service', 20, /hello/, [
    'get',
    '--raw',
    `/api/v1/namespaces/${NAMESPACE}/services/web:80/proxy/`,
  ]);
  await steps.expect('proxy to the node', 20, /^ok$/, ['get', '--raw', '/api/v1/nodes/node1/proxy/healthz']);
}

async function collection(steps: Steps): Promise<void> {
  for (const policy of ['foreground', 'background', 'orphan']) {
    const set = object('apps/v1', 'ReplicaSet', policy, {
      spec: { ...selecting(policy), template: labelled(policy, forever) },
    });
    await steps.expect(`ReplicaSet ${policy}`, 0, /created/, ['create', '-f', '-'], JSON.stringify(set));
    await steps.shows(`ReplicaSet ${policy} runs`, 60, /^1$/, `rs ${policy}`, '{.status.readyReplicas}');
    await steps.expect(`delete ${policy}`, 0, /deleted/, ['delete', 'rs', policy, `--cascade=${policy}`]);
    const left = policy === 'orphan' ? /^orphan-\w+ $/ : /^$/;
    await steps.shows(
      `pods after ${policy}`,
      90,
      left,
      `pod -l app=${policy}`,
      '{range .items[*]}{.metadata.name} {.metadata.ownerReferences}{end}',
    );
  }
  await steps.shows('signed cluster-info', 20, /jws-kubeconfig-abcdef/, 'cm cluster-info -n kube-public', '{.data}');
  await steps.shows('token of the default account', 20, /^default-token-/, 'sa default', '{.secrets[0].name}');
}

async function nodes(cluster: ForeignCluster, steps: Steps): Promise<void> {
  await cluster.end('kubelet');
  const condition = '{.status.conditions[?(@.type=="Ready")].status}';
  await steps.shows('node of a kubelet that has gone', 90, /^Unknown$/, 'node node1', condition);
  await steps.shows('its taints', 60, /unreachable/, 'node node1', '{.spec.taints[*].key}');
  await cluster.startKubelet();
  await steps.shows('node that is back', 60, /^True$/, 'node node1', condition);
  await steps.shows('its taints go', 60, /^$/, 'node node1', '{.spec.taints[*].key}');
}

async function locks(cluster: ForeignCluster, steps: Steps): Promise<void> {
  await cluster.end('kube-scheduler');
  cluster.startScheduler('endpointsleases');
  const leader = '{.metadata.annotations.control-plane\\.alpha\\.kubernetes\\.io/leader}';
  await steps.shows(
    'lock of end points and leases',
    60,
    /holderIdentity/,
    'endpoints kube-scheduler -n kube-system',
    leader,
  );
}

/** Errors in the components' logs that an upstream API server would not have caused. */
async function complaints(cluster: ForeignCluster): Promise<void> {
  const refusals =
    /is forbidden: User|could not find the requested resource|no matches for kind|unable to decode|couldn't (?:get version|decode)|Unauthorized/;
  // There is no metrics server, and a kubelet sends requests before it has its first certificate.
  const expected = /metrics|being terminated|User "system:anonymous"/;
  for (const component of ['kube-controller-manager', 'kube-scheduler', 'kubelet', 'kube-proxy'] as const) {
    const lines = (await cluster.log(component)).split('\n').filter((line) => /^[EWF]\d{4} /.test(line));
    const found = lines.filter((line) => refusals.test(line) && !expected.test(line));
    report(`complaints of ${component}`, found.length === 0 ? undefined : found.slice(0, 3).join('\n'));
  }
}

async function main(): Promise<number> {
  const programs = flags.programs;
  if (programs === undefined || !existsSync(join(programs, 'kubelet'))) {
    console.error(
      '--programs DIR must name a directory with kube-controller-manager, kube-scheduler, kubelet and kube-proxy',
    );
    return 2;
  }
  const cluster = await ForeignCluster.create(programs, flags.baseline);
  const steps = new Steps(cluster);
  stopWhenInterrupted(cluster);
  try {
    await cluster.start();
    await steps.shows(
      'kubelet comes in with a bootstrap token',
      60,
      /^True$/,
      'node node1',
      '{.status.conditions[?(@.type=="Ready")].status}',
    );
    await workloads(cluster, steps);
    await evictions(cluster, steps);
    await streams(cluster, steps);
    await collection(steps);
    await nodes(cluster, steps);
    await locks(cluster, steps);
    await steps.expect('namespace is deleted', 0, /deleted/, ['delete', 'namespace', NAMESPACE, '--wait=false']);
    await steps.expect('namespace has gone', 120, /NotFound/, ['get', 'namespace', NAMESPACE]);
    await complaints(cluster);
  } finally {
    await cluster.stop();
  }
  console.log(failures === 0 ? 'nothing was noticed' : `${failures} differences`);
  return failures === 0 ? 0 : 1;
}

process.exitCode = await main();
