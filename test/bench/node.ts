/**
 * `npm run bench:node [-- PODS KILLS SINGLE]` measures: SINGLE (30) pods, one per second, from creation to Running;
 * containers of the embedded runtime, alternating with runc alone; a deployment of PODS (110) pods from `kubectl
 * create` until all are Ready, compared with bare `runc run` in the same run; then KILLS (10) times `kill -9` of the
 * host process while these pods run. Prints a line for each figure with the CPU time of the appliance's processes. The
 * exit code is 1 if a container's PID changed.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pod } from '../../src/api/generated/core/v1.ts';
import { Appliance, eventually, run, sleep } from '../e2e/harness.ts';
import { helloImage, importHelloImage } from '../e2e/images.ts';
import { cpuByProcess } from './scheduling/cpu-by-process.ts';

const count = Number(process.argv[2] ?? 110);
const kills = Number(process.argv[3] ?? 10);
const single = Number(process.argv[4] ?? 30);
const BARE_STARTS = 20;
const SETTLE_MS = 5_000;

/** Median milliseconds for creating, starting and deleting one container with runc alone. */
async function bareContainerMs(scratch: string): Promise<number> {
  const bundle = join(scratch, 'bundle');
  await run('mkdir', ['-p', join(bundle, 'rootfs/bin')]);
  await run('cp', ['/bin/busybox', join(bundle, 'rootfs/bin/busybox')]);
  await run('runc', ['spec', '--bundle', bundle]);
  const path = join(bundle, 'config.json');
  const spec = JSON.parse(await readFile(path, 'utf8'));
  spec.process.terminal = false;
  spec.process.args = ['/bin/busybox', 'true'];
  await writeFile(path, JSON.stringify(spec));
  const times: number[] = [];
  for (let index = 0; index < BARE_STARTS; index++) {
    const begin = performance.now();
    const ran = await run('runc', ['--root', join(scratch, 'runc'), 'run', '--bundle', bundle, `bare-${index}`]);
    if (ran.code !== 0) throw new Error(`runc run: ${ran.stderr}`);
    times.push(performance.now() - begin);
  }
  spec.process.args = ['/bin/busybox', 'sleep', '1000'];
  await writeFile(path, JSON.stringify(spec));
  return quantile(times, 0.5);
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** CPU milliseconds of the appliance's processes for `work`, divided by `pods`. */
async function cpuOf(pods: number, work: () => Promise<void>): Promise<string> {
  const before = await cpuByProcess(appliance.root);
  await work();
  const after = await cpuByProcess(appliance.root);
  return [...after].map(([name, ms]) => `${name} ${((ms - (before.get(name) ?? 0)) / pods).toFixed(1)}`).join(', ');
}

/** Parsed output of a program of this benchmark, which `command` runs in a network namespace. */
async function inChild<T>(command: readonly string[], file: string, args: readonly string[]): Promise<T> {
  const [program = '', ...before] = command;
  const child = join(import.meta.dirname, 'node', file);
  const ran = await run(program, [...before, process.execPath, child, ...args], { timeoutMs: 300_000 });
  if (ran.code !== 0) throw new Error(`${file}: ${ran.stderr}`);
  return JSON.parse(ran.stdout) as T;
}

const ms = (value: number): string => `${value.toFixed(0)} ms`;

async function podsOneASecond(): Promise<void> {
  const bare = await bareContainerMs(scratch);
  let times: number[] = [];
  const cpu = await cpuOf(single, async () => {
    const inside = ['nsenter', '-t', String(appliance.holderPid), '-n'];
    const args = [appliance.kubeconfig, helloImage, String(single)];
    times = await inChild<number[]>(inside, 'one-a-second.child.ts', args);
  });
  const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)];
  console.log(`pod create to Running, one a second: p50 ${ms(p50)}, p99 ${ms(p99)}; bare runc run ${ms(bare)}`);
  console.log(`CPU ms a pod, one a second: ${cpu}`);
}

async function containerStarts(): Promise<void> {
  const args = [join(scratch, 'bundle'), join(scratch, 'runc'), String(BARE_STARTS)];
  const { own, bare } = await inChild<{ own: number[]; bare: number[] }>(
    ['unshare', '--net'],
    'container-start.child.ts',
    args,
  );
  const [ours, alone] = [quantile(own, 0.5), quantile(bare, 0.5)];
  console.log(`container start: ${ms(ours)}, runc alone ${ms(alone)}, our share ${ms(ours - alone)} (medians)`);
}

const scratch = await mkdtemp(join(tmpdir(), 'he-bench-node-'));
const appliance = await Appliance.create();
let changed = 0;
try {
  await importHelloImage(appliance, scratch);
  await appliance.start();
  await sleep(SETTLE_MS);
  console.log(
    `load ${loadavg()
      .map((each) => each.toFixed(1))
      .join(' ')}`,
  );
  if (single > 0) await podsOneASecond();
  const bareMs = await bareContainerMs(scratch);
  await containerStarts();
  const labels = { app: 'many' };
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'many' },
    spec: {
      replicas: count,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [{ name: 'c', image: helloImage, command: ['sleep', '100000'] }],
        },
      },
    },
  };
  const begin = performance.now();
  const cpu = await cpuOf(count, async () => {
    await appliance.must(['create', '-f', '-'], { input: JSON.stringify(deployment) });
    await appliance.must(['rollout', 'status', 'deploy/many', '--timeout=300s'], { timeoutMs: 310_000 });
  });
  const readyMs = performance.now() - begin;
  const bare = (readyMs / count / bareMs).toFixed(2);
  console.log(`${count} pods at once Ready: ${(readyMs / 1000).toFixed(1)} s`);
  console.log(`per pod: ${(readyMs / count).toFixed(0)} ms, ${bare} of a bare runc run (${bareMs.toFixed(0)} ms)`);
  console.log(`CPU ms a pod, at once: ${cpu}`);

  const before = await pids();
  for (let kill = 1; kill <= kills; kill++) {
    await appliance.halt('SIGKILL');
    await appliance.start();
    await eventually('all Ready', 60_000, async () => ((await readyPods()) === count ? true : undefined));
    const after = await pids();
    for (const [name, pid] of before) if (after.get(name) !== pid) changed++;
  }
  console.log(`${kills} times kill -9 of the host process: ${changed} of ${before.size * kills} PIDs changed`);
} finally {
  await appliance.stop();
  await rm(scratch, { recursive: true, force: true });
}
process.exit(changed === 0 ? 0 : 1);

async function podsOf(): Promise<readonly Pod[]> {
  return (JSON.parse(await appliance.must(['get', 'pods', '-l', 'app=many', '-o', 'json'])) as { items: Pod[] }).items;
}

async function readyPods(): Promise<number> {
  const isReady = ({ status }: Pod): boolean =>
    status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;
  return (await podsOf()).filter(isReady).length;
}

/** PID of each pod's container, from the runtime's state. */
async function pids(): Promise<Map<string, number>> {
  const runcRoot = join(appliance.root, 'run/hyperedge/containers/runc');
  const ran = await run('runc', ['--root', runcRoot, 'list', '--format', 'json']);
  const running = JSON.parse(ran.stdout) as { id: string; pid: number }[];
  const byId = new Map(running.map(({ id, pid }) => [id, pid]));
  const found = new Map<string, number>();
  for (const pod of await podsOf()) {
    const id = pod.status?.containerStatuses?.[0]?.containerID?.split('//')[1] ?? '';
    found.set(pod.metadata?.name ?? '', byId.get(id) ?? -1);
  }
  if (found.size !== count || [...found.values()].includes(-1)) throw new Error('a container has no process');
  return found;
}
