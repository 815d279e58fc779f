/**
 * `npm run bench:appliance` measures start times, and memory, CPU and disk writes when idle, of an appliance with the
 * packaged executable, each with its goal. Times are compared with a lower limit measured in the same run: the time in
 * which this machine starts the same Node binary without work, once for each process of the appliance. Prints a table
 * and exits with 1 if a goal is missed.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Appliance, eventually, executable, sleep } from '../e2e/harness.ts';
import { helloImage, importHelloImage } from '../e2e/images.ts';

const execute = promisify(execFile);
const GOALS = {
  apiReadyMs: 1_500,
  nodeReadyMs: 2_500,
  podRunningMs: 5_000,
  idlePssMb: 350,
  idleCpuPercent: 1,
  idleWritesKbPerMinute: 10,
};
/** Time in which the garbage of the start is collected. */
const SETTLE_MS = 60_000;
const IDLE_MS = 60_000;
const rounds = Number(process.argv[2] ?? 5);

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** Proportional set size of a process in kB: shared pages are divided among the processes that share them. */
async function pssKb(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
  return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0);
}

interface Use {
  readonly cpuMs: number;
  readonly writtenKb: number;
}

/** Usage since the start of the process. A tick in `stat` is 10 ms. */
async function useOf(pid: number): Promise<Use> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  const io = await readFile(`/proc/${pid}/io`, 'utf8').catch(() => '');
  return { cpuMs: (user + system) * 10, writtenKb: Number(/^write_bytes: (\d+)/m.exec(io)?.[1] ?? 0) / 1024 };
}

async function bareStartMs(): Promise<number> {
  const begin = performance.now();
  await execute(executable, ['version']);
  return performance.now() - begin;
}

const samples = { apiReadyMs: [] as number[], nodeReadyMs: [] as number[], podRunningMs: [] as number[] };
const bare: number[] = [];
let idle: { command: string; mb: number; cpuPercent: number; kbPerMinute: number }[] = [];

for (let round = 0; round < rounds; round++) {
  bare.push(await bareStartMs());
  const scratch = await mkdtemp(join(tmpdir(), 'he-bench-'));
  const appliance = await Appliance.create();
  try {
    // The image is imported before the start, as on a host that was prepared for an air-gapped site.
    await importHelloImage(appliance, scratch);
    const begin = performance.now();
    appliance.launch();
    await eventually('kubeconfig', 20_000, () => (existsSync(appliance.kubeconfig) ? true : undefined));
    await eventually('API ready', 20_000, async () =>
      (await appliance.kubectl(['get', '--raw', '/readyz'])).stdout === 'ok' ? true : undefined,
    );
    samples.apiReadyMs.push(performance.now() - begin);
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'first' },
      spec: {
        containers: [{ name: 'c', image: helloImage, command: ['sleep', '1000'] }],
        terminationGracePeriodSeconds: 1,
      },
    };
    await eventually('first pod accepted', 20_000, async () =>
      (await appliance.kubectl(['create', '-f', '-'], { input: JSON.stringify(pod) })).code === 0 ? true : undefined,
    );
    await eventually('node Ready', 20_000, async () =>
      / Ready /.test((await appliance.kubectl(['get', 'nodes', '--no-headers'])).stdout) ? true : undefined,
    );
    samples.nodeReadyMs.push(performance.now() - begin);
    await eventually('pod Running', 20_000, async () =>
      /Running/.test((await appliance.kubectl(['get', 'pod', 'first', '--no-headers'])).stdout) ? true : undefined,
    );
    samples.podRunningMs.push(performance.now() - begin);
    if (round === rounds - 1) {
      await appliance.must(['apply', '-f', join(import.meta.dirname, '../../examples/hello.yaml')]);
      await sleep(SETTLE_MS);
      const processes = await appliance.processes();
      const before = await Promise.all(processes.map(({ pid }) => useOf(pid)));
      await sleep(IDLE_MS);
      idle = await Promise.all(
        processes.map(async ({ pid, command }, index) => {
          const { cpuMs, writtenKb } = await useOf(pid);
          return {
            command,
            mb: (await pssKb(pid)) / 1024,
            cpuPercent: ((cpuMs - (before[index]?.cpuMs ?? 0)) / IDLE_MS) * 100,
            kbPerMinute: ((writtenKb - (before[index]?.writtenKb ?? 0)) / IDLE_MS) * 60_000,
          };
        }),
      );
    }
  } finally {
    await appliance.stop();
    await rm(scratch, { recursive: true, force: true });
  }
}

const total = (of: (each: (typeof idle)[number]) => number): number => idle.reduce((sum, each) => sum + of(each), 0);
const bareMs = median(bare);
const rows: [string, number, number, string][] = [
  ['API ready', median(samples.apiReadyMs), GOALS.apiReadyMs, 'ms'],
  ['node Ready', median(samples.nodeReadyMs), GOALS.nodeReadyMs, 'ms'],
  ['first pod Running', median(samples.podRunningMs), GOALS.podRunningMs, 'ms'],
  ['idle memory, all processes (PSS)', total(({ mb }) => mb), GOALS.idlePssMb, 'MB'],
  ['idle CPU, all processes', total(({ cpuPercent }) => cpuPercent), GOALS.idleCpuPercent, '% of a core'],
  ['idle disk writes', total(({ kbPerMinute }) => kbPerMinute), GOALS.idleWritesKbPerMinute, 'KB a minute'],
];
let missed = 0;
console.log(`bare start of the executable (\`version\`): ${bareMs.toFixed(0)} ms; medians of ${rounds} runs follow`);
for (const [what, value, goal, unit] of rows) {
  const met = value <= goal;
  if (!met) missed++;
  const ratio = unit === 'ms' ? `  ${(value / bareMs).toFixed(1)} x bare start` : '';
  console.log(
    `${met ? 'met   ' : 'MISSED'} ${what}: ${value.toFixed(unit.startsWith('%') ? 2 : 0)} ${unit} (goal ${goal} ${unit})${ratio}`,
  );
}
for (const each of idle.sort((a, b) => b.mb - a.mb))
  console.log(
    `       ${each.mb.toFixed(1).padStart(6)} MB  ${each.cpuPercent.toFixed(2)} %  ${each.kbPerMinute.toFixed(0)} KB/min  ${each.command.slice(0, 90)}`,
  );
process.exit(missed === 0 ? 0 : 1);
