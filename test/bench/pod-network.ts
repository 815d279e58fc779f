/**
 * `npm run bench:podnet [-- SECONDS]` measures TCP throughput and round-trip times between pods of two hosts, compared
 * with the hosts themselves in the same run: with routes on one link, and with VXLAN across a router. Hosts are network
 * namespaces, links are veth pairs.
 */
import { spawn } from 'node:child_process';
import { type Host, Lab, type LabPod } from '../network/pods/lab.ts';

const seconds = Number(process.argv[2] ?? 3);
const ROUNDS = 3;

const SERVER = `
require('net').createServer((s) => { s.setNoDelay(); s.on('error', () => {}); s.on('data', (d) => { if (d.length === 1) s.write(d); }); })
  .listen(5201, '::', () => console.log('up'));`;
const CLIENT = `
const [host, ms, kind] = [process.argv[1], Number(process.argv[2]), process.argv[3]];
const s = require('net').connect(5201, host, () => {
  s.setNoDelay();
  if (kind === 'bulk') {
    const chunk = Buffer.alloc(1 << 18);
    const from = performance.now();
    const fill = () => { while (performance.now() - from < ms) if (!s.write(chunk)) { s.once('drain', fill); return; } done(); };
    const done = () => { console.log(((s.bytesWritten - s.writableLength) * 8) / (performance.now() - from) / 1e6); process.exit(); };
    fill();
  } else {
    const times = [];
    const end = performance.now() + ms;
    let at = performance.now();
    s.on('data', () => {
      const now = performance.now();
      times.push(now - at);
      if (now > end) { times.sort((a, b) => a - b); console.log(times[times.length >> 1] * 1000); process.exit(); }
      at = now;
      s.write('x');
    });
    s.write('x');
  }
});`;

const servers: { kill(signal: 'SIGKILL'): void }[] = [];
async function serve(netns: string): Promise<void> {
  const server = spawn('ip', ['netns', 'exec', netns, process.execPath, '-e', SERVER], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  servers.push(server);
  await new Promise((resolve) => server.stdout.once('data', resolve));
}

async function measure(netns: string, to: string, kind: 'bulk' | 'trip'): Promise<number> {
  const client = spawn(
    'ip',
    ['netns', 'exec', netns, process.execPath, '-e', CLIENT, to, String(seconds * 1000), kind],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  let text = '';
  client.stdout.on('data', (data: Buffer) => {
    text += data.toString();
  });
  await new Promise((resolve) => client.once('close', resolve));
  return Number(text);
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

interface Pair {
  readonly name: string;
  readonly host: string;
  readonly hostAddress: string;
  readonly pod: string;
  readonly podAddress: string;
}

async function compare({ name, host, hostAddress, pod, podAddress }: Pair): Promise<void> {
  const figures = { bareGbit: [] as number[], podGbit: [] as number[], bareUs: [] as number[], podUs: [] as number[] };
  // Measurements alternate, so that load changes affect both.
  for (let round = 0; round < ROUNDS; round++) {
    figures.bareGbit.push(await measure(host, hostAddress, 'bulk'));
    figures.podGbit.push(await measure(pod, podAddress, 'bulk'));
    figures.bareUs.push(await measure(host, hostAddress, 'trip'));
    figures.podUs.push(await measure(pod, podAddress, 'trip'));
  }
  const [bare, pods, bareUs, podUs] = [figures.bareGbit, figures.podGbit, figures.bareUs, figures.podUs].map(median);
  const share = Math.round(((pods ?? 0) / (bare ?? 1)) * 100);
  console.log(
    `${name}: pods ${pods?.toFixed(2)} Gbit/s, hosts ${bare?.toFixed(2)} Gbit/s (${share} %); round trip pods ${podUs?.toFixed(0)} µs, hosts ${bareUs?.toFixed(0)} µs`,
  );
}

const lab = await Lab.create(1500);
try {
  const options = (number: number) => ({
    backend: 'auto' as const,
    ipFamilies: ['IPv4', 'IPv6'] as const,
    clusterCidrs: ['10.128.0.0/14', 'fd01::/48'],
    podCidrs: [`10.128.${number * 2}.0/23`, `fd01:0:0:${number}::/64`],
  });
  const hosts: Host[] = [
    await lab.plug(1, 10, options(10)),
    await lab.plug(1, 11, options(11)),
    await lab.plug(2, 12, options(12)),
  ];
  await Promise.all(hosts.map((host) => host.start()));
  const pods: LabPod[] = [];
  for (const [index, host] of hosts.entries()) pods.push(await lab.pod(host, `p${index}`));
  await lab.publish();
  for (const { netns } of [...hosts, ...pods]) await serve(netns);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const [one] = hosts;
  const [from] = pods;
  for (const [index, name] of [
    [1, 'routes, one link'],
    [2, 'VXLAN, across a router'],
  ] as const) {
    const [host, pod] = [hosts[index], pods[index]];
    if (one === undefined || from === undefined || host === undefined || pod === undefined) continue;
    for (const [at, family] of ['IPv4', 'IPv6'].entries()) {
      await compare({
        name: `${name}, ${family}`,
        host: one.netns,
        hostAddress: host.addresses[at] ?? '',
        pod: from.netns,
        podAddress: pod.ips[at] ?? '',
      });
    }
  }
} finally {
  for (const server of servers) server.kill('SIGKILL');
  await lab.destroy();
}
