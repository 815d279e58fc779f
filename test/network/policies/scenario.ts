/** Runs in a separate network namespace with the real component, real nft and pods in namespaces. Prints JSON. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Namespace, Pod } from '../../../src/api/generated/core/v1.ts';
import type { NetworkPolicy, NetworkPolicySpec } from '../../../src/api/generated/networking/v1.ts';
import { silentLog } from '../../../src/base/log.ts';
import { createNetworkPolicies } from '../../../src/network/policies/network-policies.ts';
import { createNftFilter } from '../../../src/network/services/io/netfilter/index.ts';
import { localInformers } from '../../client/local-informers.ts';

const ip = (...args: string[]): string => execFileSync('ip', args, { encoding: 'utf8' });
ip('link', 'set', 'lo', 'up');
execFileSync('sh', ['-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding']);

const child = fileURLToPath(new URL('pod.child.ts', import.meta.url));

/** Time limit of a second attempt, because a busy machine may answer the first one late. */
const SECOND_TRY_MS = 750;

class TestPod {
  readonly v4: string;
  readonly v6: string;
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, (ok: boolean) => void>();
  #requests = 0;

  constructor(index: number) {
    this.v4 = `10.128.0.${index}`;
    this.v6 = `fd00:128::${index}`;
    this.#process = spawn('unshare', ['--net', process.execPath, child], { stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface({ input: this.#process.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const { id, ok } = JSON.parse(line) as { id: number; ok: boolean };
      this.#waiting.get(id)?.(ok);
    });
  }

  /** Configures the pod like the pod network: its address, the node as only neighbour, and a route to its link. */
  async join(): Promise<void> {
    const pid = `${this.#process.pid}`;
    const link = `ve${this.v4.split('.').at(-1)}`;
    // `unshare` executes node in its own process, so the namespace exists once node responds.
    await this.request('echo', '', 0, 1);
    ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', pid);
    ip('addr', 'add', '10.128.0.1/32', 'dev', link);
    ip('-6', 'addr', 'add', 'fd00:128::1/128', 'dev', link, 'nodad');
    ip('link', 'set', link, 'up');
    const inside = (...args: string[]): void => {
      execFileSync('nsenter', [`--net=/proc/${pid}/ns/net`, 'ip', ...args]);
    };
    inside('link', 'set', 'lo', 'up');
    inside('link', 'set', 'eth0', 'up');
    inside('addr', 'add', `${this.v4}/32`, 'dev', 'eth0');
    inside('-6', 'addr', 'add', `${this.v6}/128`, 'dev', 'eth0', 'nodad');
    inside('route', 'add', '10.128.0.1', 'dev', 'eth0', 'scope', 'link');
    inside('route', 'add', 'default', 'via', '10.128.0.1', 'dev', 'eth0');
    inside('-6', 'route', 'add', 'fd00:128::1', 'dev', 'eth0');
    inside('-6', 'route', 'add', 'default', 'via', 'fd00:128::1', 'dev', 'eth0');
    ip('route', 'add', `${this.v4}/32`, 'dev', link);
    ip('-6', 'route', 'add', `${this.v6}/128`, 'dev', link);
    await this.request('listen', '', 0, 1);
  }

  request(op: string, host: string, port: number, timeoutMs: number): Promise<boolean> {
    const id = ++this.#requests;
    this.#process.stdin?.write(`${JSON.stringify({ id, op, host, port, timeoutMs })}\n`);
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  /** Lists which of TCP and UDP over both families can connect to the port: `tcp4 tcp6 udp4 udp6`. */
  async reaches(to: TestPod, port: number): Promise<string> {
    const ways = ['tcp', 'udp'].flatMap((op) => [
      { name: `${op}4`, op, host: to.v4 },
      { name: `${op}6`, op, host: to.v6 },
    ]);
    const found = await Promise.all(
      ways.map(
        async ({ op, host }) =>
          (await this.request(op, host, port, 250)) || (await this.request(op, host, port, SECOND_TRY_MS)),
      ),
    );
    return ways
      .filter((_, index) => found[index])
      .map(({ name }) => name)
      .join(' ');
  }

  end(): void {
    this.#process.stdin?.end();
  }
}

const local = localInformers();
const clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs: number, callback: () => void) => {
    const timer = setTimeout(callback, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
};
const policies = createNetworkPolicies({
  informers: local.factory,
  packetFilter: createNftFilter({ serviceRouteLink: 'lo', log: silentLog }),
  log: silentLog,
  clock,
  config: { nodeName: 'n1', table: 'he-policy' },
});

const [db, api, other, far] = [2, 3, 4, 5].map((index) => new TestPod(index)) as [TestPod, TestPod, TestPod, TestPod];
await Promise.all([db, api, other, far].map((pod) => pod.join()));

const setPod = (pod: TestPod, namespace: string, name: string, nodeName: string, ips = [pod.v4, pod.v6]): void =>
  local.set('pods', {
    metadata: { namespace, name, labels: { app: name } },
    spec: { nodeName, containers: [{ name: 'c', ports: [{ name: 'web', containerPort: 8080 }] }] },
    status: { podIPs: ips.map((each) => ({ ip: each })) },
  } satisfies Pod);
const setNamespace = (name: string, labels: Record<string, string>): void =>
  local.set('namespaces', { metadata: { name, labels } } satisfies Namespace);
const setPolicy = (name: string, spec: NetworkPolicySpec): void =>
  local.set('networkpolicies', { metadata: { namespace: 'a', name }, spec } satisfies NetworkPolicy);
/** Milliseconds until `request` first returns the expected result, with repeated requests. */
async function until(expected: boolean, request: () => Promise<boolean>): Promise<number> {
  const begin = performance.now();
  while (performance.now() - begin < 5_000) {
    const startedMs = performance.now();
    if ((await request()) === expected) return startedMs - begin;
  }
  return Number.POSITIVE_INFINITY;
}
/**
 * Resolves when the rules for all changes so far are applied. A request that fails is no proof: on a busy machine, its
 * response may also be late.
 */
const applied = (): Promise<void> => policies.verify(new Set());

setPod(db, 'a', 'db', 'n1');
setPod(api, 'a', 'api', 'n1');
setPod(other, 'b', 'other', 'n1');
// Pod of another node, behind a link of this node here. Its own node filters it.
setPod(far, 'b', 'far', 'n2');
setNamespace('a', { team: 'a' });
setNamespace('b', { team: 'b' });

const result: Record<string, unknown> = {};
await policies.start([]);
await applied();
// IPv6 addresses of a link become usable after a short time.
const all = [db, api, other, far];
for (const from of all) for (const to of all) await until(true, () => from.request('tcp', to.v6, 8080, 250));
result['withoutPolicies'] = [await api.reaches(db, 8080), await far.reaches(db, 9090)];
await api.request('open', db.v4, 9090, 1_000);

const times: number[] = [];
setPolicy('deny', { podSelector: { matchLabels: { app: 'db' } }, policyTypes: ['Ingress', 'Egress'] });
times.push(await until(false, () => api.request('udp', db.v4, 8080, 100)));
await applied();
result['denied'] = [await api.reaches(db, 8080), await far.reaches(db, 8080), await db.reaches(api, 8080)];
result['notSelected'] = [await db.reaches(db, 8080), await other.reaches(api, 8080), await far.reaches(other, 8080)];
result['established'] = await api.request('echo', '', 0, 1_000);
result['fromTheHost'] = await import('node:net').then(
  ({ connect }) =>
    new Promise((resolve) => {
      const socket = connect({ host: db.v4, port: 8080, timeout: 500 });
      socket
        .once('connect', () => resolve(true))
        .once('error', () => resolve(false))
        .once('timeout', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    }),
);
// Another program removes elements of the maps, but no rules.
for (const map of ['ingress4', 'ingress6']) execFileSync('nft', ['flush', 'map', 'inet', 'he-policy', map]);
const isOpen = await api.reaches(db, 8080);
await policies.verify(new Set(['inet he-policy']));
result['damaged'] = [isOpen, await api.reaches(db, 8080)];
setPolicy('web', {
  podSelector: { matchLabels: { app: 'db' } },
  ingress: [
    {
      from: [{ podSelector: { matchLabels: { app: 'api' } } }],
      ports: [{ port: 'web' }, { protocol: 'UDP', port: 9000, endPort: 9100 }],
    },
    { from: [{ namespaceSelector: { matchLabels: { team: 'b' } }, podSelector: { matchLabels: { app: 'far' } } }] },
  ],
});
times.push(await until(true, () => api.request('tcp', db.v4, 8080, 20)));
result['allowed'] = [
  await api.reaches(db, 8080),
  await api.reaches(db, 9090),
  await far.reaches(db, 9090),
  await other.reaches(db, 8080),
];
setNamespace('b', { team: 'c' });
times.push(await until(false, () => far.request('udp', db.v6, 8080, 100)));
await applied();
result['namespaceRelabelled'] = await far.reaches(db, 8080);
setPolicy('egress', {
  podSelector: { matchLabels: { app: 'other' } },
  policyTypes: ['Egress'],
  egress: [
    {
      to: [{ ipBlock: { cidr: '10.128.0.0/24', except: [`${far.v4}/32`] } }],
      ports: [{ protocol: 'TCP', port: 8080 }],
    },
    { to: [{ ipBlock: { cidr: 'fd00:128::4/126' } }] },
  ],
});
// A policy does not affect pods of another namespace.
await applied();
result['otherNamespace'] = await other.reaches(far, 8080);
local.set('networkpolicies', {
  ...(local.get('networkpolicies', 'a/egress') as NetworkPolicy),
  metadata: { namespace: 'b', name: 'egress' },
});
times.push(await until(false, () => other.request('udp', far.v4, 8080, 100)));
await applied();
result['egress'] = [await other.reaches(far, 8080), await other.reaches(api, 8080)];

// New pod of this node: its rules are in force when `admit` resolves, before the API has its address.
setPod(other, 'b', 'gone', 'n1', []);
local.delete('networkpolicies', 'b/egress');
local.delete('pods', 'b/other');
setPod(other, 'a', 'db2', 'n1', []);
setPolicy('db2', { podSelector: { matchLabels: { app: 'db2' } } });
await applied();
result['beforeAdmission'] = await far.reaches(other, 8080);
const begin = performance.now();
await policies.admit('a', 'db2', [other.v4, other.v6]);
const admitMs = performance.now() - begin;
result['admitted'] = await far.reaches(other, 8080);
policies.release('a', 'db2');
await applied();
result['released'] = await far.reaches(other, 8080);
await policies.stop();
result['tables'] = execFileSync('nft', ['list', 'tables'], { encoding: 'utf8' }).trim();
for (const pod of [db, api, other, far]) pod.end();
process.stdout.write(`${JSON.stringify({ result, times, admitMs })}\n`);
process.exit(0);
