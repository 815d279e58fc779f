/**
 * `npm run bench:history [-- PODS CONTAINERS]` measures the usage history of a node with PODS (110) pods of CONTAINERS
 * (2) containers: CPU time of a round of samples, compared with one call of /stats/summary; CPU time of a request; size
 * of a file. The files of the cgroups are in a temporary directory.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toNodeName } from '../../src/base/brand.ts';
import { silentLog } from '../../src/base/log.ts';
import { UsageRecorder } from '../../src/kubelet/history/recorder.ts';
import { createCgroupFileSystem } from '../../src/kubelet/io/cgroupfs/index.ts';
import { createHistoryFiles, createHostCounters } from '../../src/kubelet/io/history/index.ts';
import { createHostFacts } from '../../src/kubelet/io/host-facts/index.ts';
import { PodCgroups } from '../../src/kubelet/resources/cgroups.ts';
import { StatsProvider } from '../../src/kubelet/server/stats.ts';
import { readStats } from '../../src/runtime/oci/cgroups.ts';

const [pods, containers] = [Number(process.argv[2] ?? 110), Number(process.argv[3] ?? 2)];
const ROUNDS = 40;
const INTERVAL_MS = 15_000;
const MAX_SHARE = 0.005;

const MEMORY_STAT = ['anon', 'file', 'kernel', 'inactive_anon', 'active_anon', 'inactive_file', 'active_file']
  .concat(Array.from({ length: 40 }, (_, at) => `other_counter_${at}`))
  .map((name, at) => `${name} ${at * 1_048_576}\n`)
  .join('');

async function fill(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  const pressure =
    'some avg10=0.00 avg60=0.00 avg300=0.00 total=12345\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n';
  const files = {
    'cpu.stat': 'usage_usec 123456\nuser_usec 1\nsystem_usec 1\nnr_periods 5\nnr_throttled 1\nthrottled_usec 77\n',
    'memory.current': '104857600\n',
    'memory.stat': MEMORY_STAT,
    'pids.current': '7\n',
    'io.stat': '8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n',
    'cpu.pressure': pressure,
    'memory.pressure': pressure,
    'io.pressure': pressure,
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
}

const root = await mkdtemp(join(tmpdir(), 'he-bench-history-'));
let failed = false;
try {
  const uids = Array.from({ length: pods }, (_, at) => `0000-${at}`);
  for (const level of ['kubepods', 'kubepods/burstable', 'kubepods/besteffort']) await fill(join(root, level));
  const cgroupOf = (uid: string): string => join(root, `kubepods/besteffort/pod${uid}`);
  for (const uid of uids) {
    await fill(cgroupOf(uid));
    for (let at = 0; at < containers; at++) await fill(join(cgroupOf(uid), `${uid}-${at}`));
  }
  let monotonic = 0;
  const clock = {
    nowMs: () => Date.UTC(2026, 0, 1) + monotonic,
    monotonicMs: () => monotonic,
    setTimer: () => ({ cancel: () => {} }),
  };
  const cgroups = new PodCgroups({
    files: {
      ...createCgroupFileSystem(),
      hierarchies: async () => [{ mount: root, version: 'v2', controllers: ['cpu', 'memory', 'io', 'pids'] }],
      perform: async () => {},
    },
    slices: undefined,
    log: silentLog,
  });
  await cgroups.start(
    {
      root: [],
      allocatable: { cpuMilli: 4_000, memoryBytes: 1e9 },
      podPidsLimit: 0,
      cpuCfsQuota: true,
      memoryQos: false,
    },
    [],
  );
  const workers = uids.map((uid) => ({
    uid,
    finished: false,
    status: { startTime: '2026-01-01T00:00:00Z', podIP: '10.128.0.5' },
    pod: { metadata: { uid, name: `deployment-${uid}`, namespace: 'shop' }, spec: { containers: [] } },
  }));
  const services = {
    cgroups,
    clock,
    host: createHostFacts({ root: '/', nowMs: () => clock.nowMs() }),
    settings: { nodeName: 'bench', cgroupRoot: '/', paths: { volumes: root, images: root } },
    view: {
      get: (uid: string) => ({
        containers: Array.from({ length: containers }, (_, at) => ({
          id: `${uid}-${at}`,
          name: `c${at}`,
          state: 'running',
          startedAtMs: 0,
          image: '',
        })),
      }),
    },
    runtime: {
      containerStats: (id: string) => readStats({ unified: join(cgroupOf(id.slice(0, id.lastIndexOf('-'))), id) }, 0),
    },
  };
  const stats = new StatsProvider(services as never, { workers: () => workers as never }, () => []);
  const recorder = new UsageRecorder({
    nodeName: toNodeName('bench'),
    cgroupRoot: '/',
    clock,
    cgroups,
    log: silentLog,
    measure: () => stats.measure(),
    host: {
      counters: createHostCounters({ root: '/', monotonicMs: () => monotonic }),
      components: async () => ({ api: undefined, store: undefined }),
    },
    files: createHistoryFiles(join(root, 'files')),
  });

  /** Milliseconds of CPU time of this process for each call. */
  const cost = async (rounds: number, work: () => Promise<unknown>): Promise<number> => {
    const before = process.cpuUsage();
    for (let round = 0; round < rounds; round++) await work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000 / rounds;
  };
  const sample = async (): Promise<void> => {
    monotonic += INTERVAL_MS;
    await recorder.sample();
  };
  await cost(5, sample);
  await cost(5, () => stats.summary());
  const round = await cost(ROUNDS, sample);
  const summary = await cost(ROUNDS, () => stats.summary());
  const share = round / INTERVAL_MS;
  console.log(`round of ${pods} pods with ${containers} containers: ${round.toFixed(1)} ms of CPU`);
  console.log(`one /stats/summary: ${summary.toFixed(1)} ms of CPU; ratio ${(round / summary).toFixed(2)} (goal ≤ 2)`);
  console.log(`share of a core: ${(share * 100).toFixed(3)} % (goal ≤ ${MAX_SHARE * 100} %)`);
  failed = share > MAX_SHARE || round / summary > 2;
  const read = (query: string): Promise<unknown> => Promise.resolve([...recorder.answer(new URLSearchParams(query))]);
  const narrow = await cost(10, () => read('since=24h'));
  const wide = await cost(5, () =>
    read(`scope=pod&metric=cpu,memory&since=24h&points=${Math.min(200, Math.floor(30_000 / pods))}`),
  );
  console.log(`request of the node: ${narrow.toFixed(1)} ms; of all pods: ${wide.toFixed(1)} ms of CPU`);
} finally {
  await rm(root, { recursive: true, force: true });
}
if (failed) process.exitCode = 1;
