/**
 * Runs in a separate network namespace (see proxy.test.ts) with the real proxy, real sockets and real nft. Prints JSON.
 */
import { execFileSync, spawn } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Service } from '../../../src/api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../src/api/generated/discovery/v1.ts';
import type { KubeObject, ResourceType } from '../../../src/api/meta/object.ts';
import { objectKey } from '../../../src/api/meta/object.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { Clock } from '../../../src/base/time/clock.ts';
import type { ChangeHandler, Informer, InformerFactory } from '../../../src/client/types.ts';
import { createProxy } from '../../../src/network/services/index.ts';
import { createHealthPorts } from '../../../src/network/services/io/health-ports/health-ports.ts';
import { createNftFilter } from '../../../src/network/services/io/netfilter/index.ts';
import { createStreamForwarder } from '../../../src/network/services/io/stream-forwarder.ts';

const mode = process.argv[2] as 'nftables' | 'userspace';
const ip = (...args: string[]): string => execFileSync('ip', args, { encoding: 'utf8' });
ip('link', 'set', 'lo', 'up');
ip('link', 'add', 'br0', 'type', 'bridge');
ip('addr', 'add', '10.128.0.1/23', 'dev', 'br0');
ip('link', 'set', 'br0', 'up');
for (const last of [2, 3]) {
  ip('addr', 'add', `10.128.0.${last}/32`, 'dev', 'lo');
  ip('-6', 'addr', 'add', `fd00:128::${last}/128`, 'dev', 'lo');
}
ip('route', 'add', '192.0.2.0/24', 'dev', 'br0');
ip('-6', 'addr', 'add', 'fd00:128::1/64', 'dev', 'br0', 'nodad');

const run = (program: string): string => execFileSync('nft', ['-f', '-'], { input: program, encoding: 'utf8' });
/** The host itself listens on this port of every address. */
const OWN_PORT = 9443;
createServer((socket) => socket.end('host')).listen(OWN_PORT, '0.0.0.0');
// Rules left by a process without reserved ports, in the mode with rules.
run(`table ip he-test {
  chain thief { meta l4proto tcp dnat to 10.128.0.3:8080; }
  map service_ips { type ipv4_addr . inet_proto . inet_service : verdict; elements = { 10.128.0.1 . tcp . ${OWN_PORT} : goto thief }; }
  chain services { ip daddr . meta l4proto . th dport vmap @service_ips; }
  chain nat_output { type nat hook output priority -100; jump services; }
}\n`);
const api = Promise.withResolvers<void>();

/** The informer contract over a plain map, for one process. */
function localInformer<T extends KubeObject>(type: ResourceType<T>): Informer<T> & { set(object: T): void } {
  const objects = new Map<string, T>();
  const handlers = new Set<ChangeHandler<T>>();
  return {
    type,
    start: () => {},
    synced: api.promise,
    hasSynced: true,
    listed: api.promise,
    hasListed: true,
    get: (key) => objects.get(key),
    list: () => [...objects.values()],
    byIndex: () => [],
    addIndex: () => {},
    onChange(handler) {
      for (const object of objects.values()) handler.added?.(object);
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    stop: async () => {},
    set(object) {
      const old = objects.get(objectKey(object));
      objects.set(objectKey(object), object);
      for (const handler of handlers) {
        if (old === undefined) handler.added?.(object);
        else handler.updated?.(object, old);
      }
    },
  };
}

const informers = new Map<string, ReturnType<typeof localInformer>>();
const factory: InformerFactory = {
  informer<T extends KubeObject>(type: ResourceType<T>): Informer<T> {
    const known = informers.get(type.plural) ?? localInformer(type as ResourceType);
    informers.set(type.plural, known);
    return known as unknown as Informer<T>;
  },
  startAndSync: async () => {},
  stop: async () => {},
};

const clock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
};

const needed = new Set<string>();
const newProxy = () =>
  createProxy({
    informers: factory,
    packetFilter: createNftFilter({ serviceRouteLink: 'br0', log: silentLog }),
    forwarder: createStreamForwarder({ dummyLink: 'he-svc', fallbackLink: 'br0', log: silentLog }),
    healthPorts: createHealthPorts(),
    log: silentLog,
    clock,
    needPods: ({ metadata }) => void needed.add(metadata?.name ?? ''),
    random: { random: Math.random, uuid: () => crypto.randomUUID(), bytes: (n) => new Uint8Array(n) },
    config: {
      nodeName: 'n1',
      serviceCidrs: ['172.30.0.0/16', 'fd00:172::/112'],
      clusterCidrs: ['10.128.0.0/14', 'fd00:128::/48'],
      mode,
      table: 'he-test',
      reservedPorts: [{ protocol: 'TCP', port: OWN_PORT }],
      hostAddresses: () => ['127.0.0.1', '10.128.0.1'],
    },
  });
const proxy = newProxy();

for (const last of [2, 3]) {
  for (const host of [`10.128.0.${last}`, `fd00:128::${last}`]) {
    createServer((socket) => socket.end(`${host}`)).listen(8080, host);
    const udp = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    udp.on('message', (message, peer) => udp.send(`${host} ${message}`, peer.port, peer.address));
    udp.bind(5353, host);
  }
}

const service = (name: string, clusterIP: string, extra: object = {}): Service => ({
  metadata: { namespace: 'ns', name },
  spec: {
    clusterIP,
    ports: [
      { name: 'http', port: 80, protocol: 'TCP', nodePort: name === 'web' ? 30_080 : 0 },
      { name: 'dns', port: 53, protocol: 'UDP' },
    ],
    ...extra,
  },
});
const slice = (name: string, ips: string[], family: 4 | 6 = 4): EndpointSlice => ({
  addressType: `IPv${family}`,
  metadata: { namespace: 'ns', name: `${name}-${family}`, labels: { 'kubernetes.io/service-name': name } },
  ports: [
    { name: 'http', port: 8080, protocol: 'TCP' },
    { name: 'dns', port: 5353, protocol: 'UDP' },
  ],
  endpoints: ips.map((each) => ({ addresses: [each], nodeName: 'n1' })),
});
factory.informer({ group: '', version: 'v1', kind: 'Service', plural: 'services', namespaced: true });
factory.informer({
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
});
const set = (object: Service | EndpointSlice, plural: string): void => informers.get(plural)?.set(object);

set(service('web', '172.30.0.10'), 'services');
set(slice('web', ['10.128.0.2', '10.128.0.3']), 'endpointslices');
set(
  service('dual', '172.30.0.15', {
    clusterIPs: ['172.30.0.15', 'fd00:172::15'],
    ports: [
      { name: 'http', port: 80, protocol: 'TCP', nodePort: 30_081 },
      { name: 'dns', port: 53, protocol: 'UDP', nodePort: 30_082 },
    ],
  }),
  'services',
);
set(slice('dual', ['10.128.0.2']), 'endpointslices');
set(slice('dual', ['fd00:128::2', 'fd00:128::3'], 6), 'endpointslices');
const sticky = { sessionAffinity: 'ClientIP', clusterIPs: ['172.30.0.11', 'fd00:172::11'] };
set(service('sticky', '172.30.0.11', sticky), 'services');
set(slice('sticky', ['fd00:128::2', 'fd00:128::3'], 6), 'endpointslices');
set(
  {
    ...service('balanced', '172.30.0.16', {
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: 30_999,
      loadBalancerSourceRanges: ['198.51.100.0/24'],
    }),
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.20' }] } },
  },
  'services',
);
set(slice('balanced', ['10.128.0.3']), 'endpointslices');
set(slice('sticky', ['10.128.0.2', '10.128.0.3']), 'endpointslices');
const farPort = { name: 'http', port: 80, protocol: 'TCP', nodePort: 30_083 };
set(service('far', '172.30.0.20', { type: 'NodePort', externalTrafficPolicy: 'Local', ports: [farPort] }), 'services');
const far = slice('far', ['10.128.0.3']);
set({ ...far, endpoints: (far.endpoints ?? []).map((each) => ({ ...each, nodeName: 'n2' })) }, 'endpointslices');
set(service('empty', '172.30.0.12'), 'services');
set(service('itself', '172.30.0.17'), 'services');
set(slice('itself', ['10.128.0.50']), 'endpointslices');
ip('addr', 'add', '192.0.2.9/32', 'dev', 'lo');
const stolen = [
  { name: 'http', port: OWN_PORT, protocol: 'TCP', nodePort: OWN_PORT },
  { name: 'http', port: 8099, protocol: 'TCP' },
];
set(service('own', '172.30.0.13', { externalIPs: ['10.128.0.1'], ports: stolen }), 'services');
set(slice('own', ['10.128.0.2']), 'endpointslices');
// Address that is not among hostAddresses, because it was added after the rules were written.
set(service('new', '172.30.0.14', { externalIPs: ['192.0.2.9'], ports: stolen.slice(0, 1) }), 'services');

async function get(host: string, port: number, timeout = 2_000, localAddress?: string): Promise<string> {
  const socket = connect({ host, port, timeout, ...(localAddress === undefined ? {} : { localAddress }) });
  socket.on('timeout', () => socket.destroy(new Error('timeout')));
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  try {
    await once(socket, 'close');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? (error as Error).message;
  }
  return text;
}

/** `kept`: socket that stays open, so that its packets form one flow. */
async function ask(host: string, port: number, kept?: Socket): Promise<string> {
  const socket = kept ?? createSocket(host.includes(':') ? 'udp6' : 'udp4');
  const answer = Promise.race([
    once(socket, 'message').then(([message]) => String(message)),
    new Promise<string>((resolve) => setTimeout(resolve, 2_000, 'timeout')),
  ]);
  socket.send('q', port, host);
  const text = await answer;
  if (kept === undefined) socket.close();
  return text;
}

const several = async (ask: () => Promise<string>, times: number): Promise<string[]> => {
  const seen = new Set<string>();
  for (let index = 0; index < times; index++) seen.add(await ask());
  return [...seen].sort();
};

const result: Record<string, unknown> = {};
result['stale'] = await get('10.128.0.1', OWN_PORT);
const started = proxy.start();
await new Promise((resolve) => setTimeout(resolve, 300));
result['beforeTheApi'] = await get('10.128.0.1', OWN_PORT);
api.resolve();
await started;
result['own'] = [await get('10.128.0.1', OWN_PORT), await get('192.0.2.9', OWN_PORT), await get('127.0.0.1', OWN_PORT)];
result['beside'] = await get('10.128.0.1', 8099);
result['ownOfClusterIp'] = await get('172.30.0.13', 8099);
result['cluster'] = await several(() => get('172.30.0.10', 80), 40);
result['nodePort'] = await several(() => get('10.128.0.1', 30_080), 40);
result['udp'] = await several(() => ask('172.30.0.10', 53), 30);
result['sticky'] = (await several(() => get('172.30.0.11', 80), 20)).length;
const status = async (): Promise<string> => {
  const answer = await fetch('http://127.0.0.1:30999/');
  return `${answer.status} ${answer.headers.get('x-load-balancing-endpoint-weight')} ${await answer.text()}`;
};
if (mode === 'nftables') result['farNodePort'] = await get('10.128.0.1', 30_083);
result['balanced'] = [await get('192.0.2.20', 80), await status()];
if (mode === 'nftables') {
  result['six'] = {
    cluster: await several(() => get('fd00:172::15', 80), 40),
    nodePort: await several(() => get('fd00:128::1', 30_081), 40),
    udp: await several(() => ask('fd00:172::15', 53), 30),
    sticky: (await several(() => get('fd00:172::11', 80), 20)).length,
  };
}
/** A pod that connects to its own service. It would drop the packets if they had its own source address. */
async function askItself(): Promise<string> {
  const child = fileURLToPath(new URL('hairpin.child.ts', import.meta.url));
  const pod = spawn('unshare', ['--net', process.execPath, child, '10.128.0.50', '172.30.0.17']);
  let text = '';
  pod.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  await once(pod.stdout, 'data');
  const inPod = (...args: string[]): string =>
    execFileSync('nsenter', ['-t', `${pod.pid}`, '-n', 'ip', ...args], { encoding: 'utf8' });
  ip('link', 'add', 'he-pod', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', `${pod.pid}`);
  ip('addr', 'add', '10.128.0.51/32', 'dev', 'he-pod');
  ip('link', 'set', 'he-pod', 'up');
  ip('route', 'add', '10.128.0.50', 'dev', 'he-pod');
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
  for (const link of ['lo', 'eth0']) inPod('link', 'set', link, 'up');
  inPod('addr', 'add', '10.128.0.50/32', 'dev', 'eth0');
  inPod('route', 'add', '10.128.0.1', 'dev', 'eth0');
  inPod('route', 'add', 'default', 'via', '10.128.0.1');
  pod.stdin.end('go\n');
  await once(pod, 'close');
  return text.replace('up\n', '');
}
if (mode === 'nftables') result['itself'] = await askItself();

const flow = createSocket('udp4');
const nodeFlow = createSocket('udp4');
const sixFlow = createSocket('udp6');
set(slice('dual', ['fd00:128::2'], 6), 'endpointslices');
await new Promise((resolve) => setTimeout(resolve, 300));
const flows = async (): Promise<string[]> => [
  await ask('172.30.0.15', 53, flow),
  await ask('10.128.0.1', 30_082, nodeFlow),
  ...(mode === 'nftables' ? [await ask('fd00:172::15', 53, sixFlow)] : []),
];
result['flows'] = await flows();
set(slice('dual', ['10.128.0.3']), 'endpointslices');
set(slice('dual', ['fd00:128::3'], 6), 'endpointslices');
set(slice('balanced', []), 'endpointslices');
await new Promise((resolve) => setTimeout(resolve, 300));
result['flowsMoved'] = mode === 'nftables' ? await flows() : [];
result['unbalanced'] = await status();
result['empty'] = await get('172.30.0.12', 80);
set(slice('web', ['10.128.0.3']), 'endpointslices');
set(slice('empty', ['10.128.0.2']), 'endpointslices');
await new Promise((resolve) => setTimeout(resolve, 300));
result['afterChange'] = await several(() => get('172.30.0.10', 80), 20);
result['emptyFilled'] = await get('172.30.0.12', 80);
if (mode === 'nftables') {
  const annotations = { 'idling.alpha.openshift.io/idled-at': '2026-01-01T00:00:00Z' };
  const idle = (name: string, address: string, more: Service['spec'] = {}): Service => {
    const { metadata, ...rest } = service(name, address, { clusterIPs: [address], ...more });
    return { ...rest, metadata: { ...metadata, annotations } };
  };
  set(idle('idle', '172.30.0.18'), 'services');
  set(idle('idle6', 'fd00:172::18'), 'services');
  set(idle('untouched', '172.30.0.19'), 'services');
  const http = { name: 'http', port: 80, protocol: 'TCP' };
  set(idle('node-port', '172.30.0.20', { ports: [{ ...http, nodePort: 30_085 }] }), 'services');
  set(idle('outside', '172.30.0.21', { externalIPs: ['192.0.2.77'] }), 'services');
  set(idle('thief', '172.30.0.22', { externalIPs: ['10.128.0.1'], ports: stolen }), 'services');
  await new Promise((resolve) => setTimeout(resolve, 300));
  const connecting = get('172.30.0.18', 80, 20_000);
  const connecting6 = get('fd00:172::18', 80, 20_000);
  const others = [get('10.128.0.1', 30_085, 20_000), get('192.0.2.77', 80, 20_000)];
  result['besideIdled'] = await get('10.128.0.1', OWN_PORT);
  for (let tries = 0; needed.size < 4 && tries < 100; tries++) await new Promise((resolve) => setTimeout(resolve, 100));
  result['needed'] = [...needed].sort();
  set(slice('idle', ['10.128.0.2']), 'endpointslices');
  set(slice('idle6', ['fd00:128::2'], 6), 'endpointslices');
  set(slice('node-port', ['10.128.0.3']), 'endpointslices');
  set(slice('outside', ['10.128.0.3']), 'endpointslices');
  result['woken'] = await Promise.all([connecting, connecting6, ...others]);
}
const clients = Array.from({ length: 16 }, (_, index) => index + 16);
for (const last of clients) {
  ip('addr', 'add', `10.128.1.${last}/32`, 'dev', 'lo');
  ip('-6', 'addr', 'add', `fd00:128::1:${last}/128`, 'dev', 'lo', 'nodad');
}
const byClient = (): Promise<string[]> =>
  Promise.all(
    clients.flatMap((last) => [
      get('172.30.0.11', 80, 2_000, `10.128.1.${last}`),
      get('fd00:172::11', 80, 2_000, `fd00:128::1:${last}`),
    ]),
  );
let last = proxy;
if (mode === 'nftables') {
  const before = await byClient();
  await proxy.stop({ keepRules: true });
  last = newProxy();
  await last.start();
  const after = await byClient();
  result['restarted'] = {
    endpoints: new Set(before).size,
    moved: after.filter((each, index) => each !== before[index]),
  };
}
await last.stop();
for (const each of [flow, nodeFlow, sixFlow]) each.close();
result['tables'] = execFileSync('nft', ['list', 'tables'], { encoding: 'utf8' }).trim();
result['left'] = ip('-4', '-o', 'addr', 'show').includes('172.30.') ? 'address' : '';
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);
