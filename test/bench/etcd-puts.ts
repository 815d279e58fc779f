/**
 * `node test/bench/etcd-puts.ts [clients] [seconds]`: puts of 1 KB per second that our etcd takes from 16 clients, against Debian's
 * etcd: same client, same disk, same run, turn by turn. Both run as processes of their own over TLS.
 */
import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import type { Store } from '../../src/core/mvcc/port.ts';
import {
  type Certificates,
  connect,
  makeCertificates,
  remove,
  startDebianEtcd,
  startProcess,
  temporaryDirectory,
} from '../components/etcd/harness.ts';

const clients = Number(process.argv[2] ?? 16);
const seconds = Number(process.argv[3] ?? 2);
const ROUNDS = 2;

interface Figures {
  readonly perSecond: number;
  readonly medianMs: number;
  readonly p99Ms: number;
}

async function measure(store: Store, prefix: string): Promise<Figures> {
  const value = Buffer.alloc(1024, 'x');
  const times: number[] = [];
  const end = performance.now() + seconds * 1000;
  let count = 0;
  const began = performance.now();
  const client = async (): Promise<void> => {
    while (performance.now() < end) {
      const key = `/bench/${prefix}/${count}`;
      count += 1;
      const before = performance.now();
      await store.commit({ guards: [{ key, modRevision: 0 }], puts: [{ key, value }] });
      times.push(performance.now() - before);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const elapsed = (performance.now() - began) / 1000;
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.floor(times.length * share)] ?? 0;
  return { perSecond: count / elapsed, medianMs: at(0.5), p99Ms: at(0.99) };
}

async function cpuSeconds(child: ChildProcess): Promise<number> {
  const fields = (await readFile(`/proc/${child.pid}/stat`, 'latin1')).split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const directory = await temporaryDirectory();
const certificates: Certificates = await makeCertificates(directory);
const debian = await startDebianEtcd(directory, certificates);
const ours = await startProcess(directory, certificates);
try {
  const stores = { ours: connect(ours.endpoint, certificates), debian: connect(debian.endpoint, certificates) };
  const results: Record<keyof typeof stores, Figures[]> = { ours: [], debian: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const name of ['debian', 'ours'] as const) {
      const [cpuBefore, mine] = [await cpuSeconds(ours.child), process.cpuUsage()];
      const figures = await measure(stores[name], String(round));
      results[name].push(figures);
      const used = process.cpuUsage(mine);
      const micros = (used.user + used.system) / (figures.perSecond * seconds);
      const server = ((await cpuSeconds(ours.child)) - cpuBefore) / (figures.perSecond * seconds);
      const cost = name === 'ours' ? ` server CPU ${(server * 1e6).toFixed(0)} µs/put` : '';
      process.stdout.write(
        `${name}: ${figures.perSecond.toFixed(0)} puts/s, median ${figures.medianMs.toFixed(2)} ms, p99 ${figures.p99Ms.toFixed(2)} ms, client CPU ${micros.toFixed(0)} µs/put${cost}\n`,
      );
    }
  }
  const best = (name: keyof typeof stores): number => Math.max(...results[name].map((figures) => figures.perSecond));
  process.stdout.write(
    `puts by ${clients} clients, 1 KB: ${(best('ours') / best('debian')).toFixed(2)} × Debian's etcd\n`,
  );
  await Promise.all([stores.ours.close(), stores.debian.close()]);
} finally {
  ours.child.kill('SIGTERM');
  await ours.exited;
  await debian.stop();
  await remove(directory);
}
