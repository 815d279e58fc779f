/** Resource usage of a store: memory, bytes written to disk, start time, file growth, and latency during compaction. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Certificates } from '../../store/harness.ts';
import { Client } from './client.ts';
import { compare, load, median, spread } from './load.ts';
import { BenchCluster, KINDS, type Kind, usage } from './members.ts';

export interface CostOptions {
  readonly directory: string;
  readonly certificates: Certificates;
  readonly executable: string | undefined;
  readonly profile: string | undefined;
}

const MB = 1 << 20;
const KEYS = 100_000;
const value = (): Buffer => Buffer.alloc(1024, 'x');
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs `measure` on a new cluster of each store. */
async function onEach<T>(
  { directory, certificates, executable, profile }: CostOptions,
  members: number,
  measure: (cluster: BenchCluster, client: Client) => Promise<T>,
): Promise<Record<Kind, T>> {
  const found: Partial<Record<Kind, T>> = {};
  for (const kind of KINDS) {
    const cluster = await BenchCluster.start({ kind, members, directory, certificates, executable, profile });
    const client = new Client(cluster.endpoints, certificates);
    try {
      found[kind] = await measure(cluster, client);
    } finally {
      client.close();
      await cluster.remove();
    }
  }
  return found as Record<Kind, T>;
}

function line<T>(what: string, unit: string, found: Record<Kind, T>, figure: (found: T) => number, goal: string): void {
  compare(what, unit, [{ ours: figure(found.ours), etcd: figure(found.etcd) }], goal);
}

/**
 * Memory with 100,000 keys of 1 KB: after writing, after a minute of rest and after a restart; and the time of a
 * restart.
 */
export async function memory(options: CostOptions): Promise<void> {
  const found = await onEach(options, 1, async (cluster, client) => {
    await fill(client, KEYS);
    await sleep(5000);
    const written = await usage(cluster.pids);
    await cluster.stop();
    const startMs = await cluster.start();
    await sleep(2000);
    const restarted = await usage(cluster.pids);
    return { written, restarted, startMs };
  });
  line('PSS after 100,000 puts of 1 KB', 'MB', found, ({ written }) => written.pss / MB, 'goal ≤ 1.5');
  line('RSS after 100,000 puts of 1 KB', 'MB', found, ({ written }) => written.rss / MB, 'goal ≤ 1.5');
  line('PSS after a restart with them', 'MB', found, ({ restarted }) => restarted.pss / MB, 'goal ≤ 1.5');
  line('start with 100,000 keys', 'ms', found, ({ startMs }) => startMs, '');
}

async function fill(client: Client, keys: number): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: 50 }, async () => {
      while (next < keys) {
        next += 1;
        await client.put(`/registry/configmaps/namespace-${next % 100}/object-${next}`, value());
      }
    }),
  );
}

/** Bytes that are written to disk for each put of 1 KB. */
export async function written(options: CostOptions): Promise<void> {
  for (const members of [1, 3]) {
    for (const clients of [1, 16]) {
      const found = await onEach(options, members, async (cluster, client) => {
        await load(clients, 0.5, (n) => client.put(`/warm/${n % 500}`, value()));
        const before = await usage(cluster.pids);
        let puts = 0;
        await load(clients, 6, async (n) => {
          await client.put(`/registry/pods/default/pod-${n % 5000}`, value());
          puts += 1;
        });
        // Wait, so that delayed writes are included.
        await sleep(1500);
        const after = await usage(cluster.pids);
        return {
          bytes: (after.written - before.written) / puts,
          cpu: ((after.cpuSeconds - before.cpuSeconds) / puts) * 1e6,
        };
      });
      const what = `${members} × ${clients} ${clients === 1 ? 'client' : 'clients'}`;
      line(`${what}: bytes to disk for each put of 1 KB`, 'B', found, ({ bytes }) => bytes, 'goal ≤ 1.0');
      line(`${what}: CPU of all members for each put`, 'µs', found, ({ cpu }) => cpu, '');
    }
  }
}

/** Bytes that three idle members write. */
export async function idle(options: CostOptions): Promise<void> {
  const SECONDS = 60;
  const found = await onEach(options, 3, async (cluster, client) => {
    await client.put('/one', value());
    await sleep(3000);
    const before = await usage(cluster.pids);
    await sleep(SECONDS * 1000);
    const after = await usage(cluster.pids);
    return { bytes: after.written - before.written, cpu: (after.cpuSeconds - before.cpuSeconds) / SECONDS };
  });
  line('idle cluster of three: bytes to disk a minute', 'B', found, ({ bytes }) => bytes, 'goal ≤ 4 KB');
  line('idle cluster of three: CPU of all members', '%', found, ({ cpu }) => cpu * 100, '');
}

const LIVE = 2000;
const OVERWRITES = 60_000;

/**
 * Repeated overwriting of 2,000 keys, compacted every 5,000 revisions, and latency of puts at a constant rate
 * meanwhile.
 */
export async function growth(options: CostOptions): Promise<void> {
  const found = await onEach(options, 1, async (cluster, client) => {
    const sizes: number[] = [];
    let n = 0;
    for (let part = 0; part < OVERWRITES / 5000; part += 1) {
      const end = n + 5000;
      await Promise.all(
        Array.from({ length: 32 }, async () => {
          while (n < end) {
            n += 1;
            await client.put(`/over/${n % LIVE}`, value());
          }
        }),
      );
      await client.compact(await client.revision());
      sizes.push(await filesOf(cluster));
    }
    await sleep(2000);
    const usual = await paced(client, 3);
    for (let i = 0; i < 20_000; i += 100)
      await Promise.all(Array.from({ length: 100 }, (_, at) => client.put(`/over/${(i + at) % LIVE}`, value())));
    const revision = await client.revision();
    const cleaning = paced(client, 3);
    await client.compact(revision);
    return { most: Math.max(...sizes), last: await filesOf(cluster), usual, during: await cleaning };
  });
  line(
    'files under endless overwriting of 2 MB: most',
    'MB',
    found,
    ({ most }) => most / MB,
    'goal ≤ 2 × live + constant',
  );
  line('files in the end', 'MB', found, ({ last }) => last / MB, '');
  line('p99 of puts at 200/s, as usual', 'ms', found, ({ usual }) => usual, '');
  line('p99 of puts at 200/s, while 20,000 revisions are discarded', 'ms', found, ({ during }) => during, '');
  for (const kind of KINDS)
    process.stdout.write(`  ${kind}: ${(found[kind].during / found[kind].usual).toFixed(2)} × the usual (goal ≤ 2)\n`);
}

/** The p99 of puts at a constant rate, sent independently of responses. */
async function paced(client: Client, seconds: number): Promise<number> {
  const times: number[] = [];
  const under: Promise<void>[] = [];
  const began = performance.now();
  for (let i = 0; i < seconds * 200; i += 1) {
    const due = began + i * 5;
    while (performance.now() < due) await sleep(1);
    const startedMs = performance.now();
    under.push(
      client.put(`/paced/${i % 100}`, value()).then(() => {
        times.push(performance.now() - startedMs);
      }),
    );
  }
  await Promise.all(under);
  return spread(times).p99Ms;
}

async function filesOf(cluster: BenchCluster): Promise<number> {
  let bytes = 0;
  for (const directory of cluster.dataDirectories) {
    for (const name of await readdir(directory, { recursive: true })) {
      const found = await stat(join(directory, name)).catch(() => undefined);
      if (found?.isFile()) bytes += found.blocks * 512;
    }
  }
  return bytes;
}

/** Start of an empty member, for reference. */
export async function start(options: CostOptions): Promise<void> {
  const found = await onEach(options, 1, async (cluster) => {
    const times: number[] = [];
    for (let i = 0; i < 5; i += 1) {
      await cluster.stop();
      times.push(await cluster.start());
    }
    return median(times);
  });
  line('start with an empty store', 'ms', found, (ms) => ms, '');
}
