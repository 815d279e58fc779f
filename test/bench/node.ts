/**
 * `npm run bench:node [-- PODS KILLS]`: a deployment of PODS pods (100) at once, from `kubectl create` to all Ready, beside the
 * same number of bare `runc run` on this machine in the same run; then KILLS (10) times `kill -9` of the host process under these
 * pods, after which no container may have another PID. Prints a line for each figure; exit code 1 when a PID changed.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pod } from 'kubernetes-types/core/v1';
import { Appliance, eventually, run } from '../e2e/harness.ts';
import { helloImage, importHelloImage } from '../e2e/images.ts';

const count = Number(process.argv[2] ?? 100);
const kills = Number(process.argv[3] ?? 10);
const BARE_STARTS = 20;

/** Median milliseconds of creating, starting and deleting one container with the runtime alone. */
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
  return times.sort((a, b) => a - b)[times.length >> 1] ?? Number.NaN;
}

const scratch = await mkdtemp(join(tmpdir(), 'he-bench-node-'));
const appliance = await Appliance.create();
let changed = 0;
try {
  await importHelloImage(appliance, scratch);
  await appliance.start();
  const bareMs = await bareContainerMs(scratch);
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
  await appliance.must(['create', '-f', '-'], { input: JSON.stringify(deployment) });
  await appliance.must(['rollout', 'status', 'deploy/many', '--timeout=300s'], { timeoutMs: 310_000 });
  const readyMs = performance.now() - begin;
  const bare = (readyMs / count / bareMs).toFixed(2);
  console.log(`${count} pods at once Ready: ${(readyMs / 1000).toFixed(1)} s`);
  console.log(`per pod: ${(readyMs / count).toFixed(0)} ms, ${bare} of a bare runc run (${bareMs.toFixed(0)} ms)`);

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

/** The first process of each pod's container, from the runtime's own state. */
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
