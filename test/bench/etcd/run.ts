/**
 * `npm run bench:etcd -- [part ...] [--members 1,3] [--rounds 3] [--seconds 1] [--packaged] [--profile DIR] [--clients
 * 1,16,100,1000] [--bytes 1024,256]` compares this project's store with Debian's etcd: real processes with the same
 * flags and TLS, the same client, alternating in one run. Parts: puts, ranges, txns, watches (each with every number of
 * members), memory, written, idle, growth, start, perf-s, perf-m, perf-l; the default is all but the last three. Ratios
 * are this store ÷ etcd.
 */
import { mkdir } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { makeCertificates, remove, temporaryDirectory } from '../../store/harness.ts';
import { Client } from './client.ts';
import { type CostOptions, growth, idle, memory, start, written } from './cost.ts';
import { load } from './load.ts';
import { BenchCluster, type Kind, packaged } from './members.ts';
import { checkPerf } from './perf.ts';
import { puts, ranges, type SpeedOptions, transactions, watches } from './speed.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    members: { type: 'string', default: '1,3' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '1' },
    packaged: { type: 'boolean', default: false },
    profile: { type: 'string' },
    clients: { type: 'string', default: '1,16,100,1000' },
    bytes: { type: 'string', default: '1024,256' },
  },
});
const SPEED = ['puts', 'txns', 'ranges', 'watches'];
const COST = ['memory', 'written', 'idle', 'growth', 'start'];
const WARM_UP_SECONDS = 3;
const PERF = ['perf-s', 'perf-m', 'perf-l'];
const unknown = positionals.filter((part) => ![...SPEED, ...COST, ...PERF].includes(part));
if (unknown.length > 0) {
  process.stderr.write(`no such part: ${unknown.join(', ')}; there are ${[...SPEED, ...COST, ...PERF].join(', ')}\n`);
  process.exit(2);
}
const parts = positionals.length > 0 ? positionals : [...SPEED, ...COST];
const numbers = (list: string): number[] => list.split(',').map(Number);
const members = numbers(values.members);
if (values.profile !== undefined) await mkdir(values.profile, { recursive: true });

const directory = await temporaryDirectory();
const certificates = await makeCertificates(directory);
const options: CostOptions = {
  directory,
  certificates,
  executable: values.packaged ? packaged() : undefined,
  profile: values.profile,
};
process.stdout.write(`load of the machine before: ${loadavg()[0]?.toFixed(1)}\n`);
try {
  const speed = SPEED.filter((part) => parts.includes(part));
  if (speed.length > 0) for (const count of members) await measureSpeed(count, speed);
  const costs = { memory, written, idle, growth, start };
  for (const [name, measure] of Object.entries(costs)) if (parts.includes(name)) await measure(options);
  const loads = PERF.filter((part) => parts.includes(part)).map((part) => part.slice('perf-'.length));
  if (loads.length > 0) for (const count of members) await checkPerf(options, count, loads);
} finally {
  await remove(directory);
}
process.stdout.write(`load of the machine after: ${loadavg()[0]?.toFixed(1)}\n`);

async function measureSpeed(count: number, speed: readonly string[]): Promise<void> {
  const clusters: Record<Kind, BenchCluster> = {
    etcd: await BenchCluster.start({ ...options, kind: 'etcd', members: count }),
    ours: await BenchCluster.start({ ...options, kind: 'ours', members: count }),
  };
  const connect = (kind: Kind): Client => new Client(clusters[kind].endpoints, certificates);
  const clients = { etcd: connect('etcd'), ours: connect('ours') };
  const how: SpeedOptions = {
    clients,
    members: count,
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    bytes: numbers(values.bytes),
    counts: numbers(values.clients),
  };
  try {
    // Warm up both stores, because a store runs for months.
    for (const client of Object.values(clients))
      await load(100, WARM_UP_SECONDS, (n) => client.put(`/warm/${n % 1000}`, Buffer.alloc(1024, 'x')));
    if (speed.includes('puts')) await puts(how);
    if (speed.includes('txns')) await transactions(how);
    if (speed.includes('ranges')) await ranges(how);
    if (speed.includes('watches')) await watches(connect, how);
  } finally {
    for (const client of Object.values(clients)) client.close();
    await Promise.all(Object.values(clusters).map((cluster) => cluster.remove()));
  }
}
