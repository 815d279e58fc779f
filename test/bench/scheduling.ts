/**
 * `npm run bench:scheduling [-- core|api] [NODES] [REPLICAS]` measures the scheduler core with 10, 100, 1,000 and 5,000
 * nodes, with and without placed pods, compared with a bare loop over the nodes in the same run; then, with the
 * packaged appliance and NODES (1,000) hollow nodes, a deployment of REPLICAS (1,000), compared with direct bindings.
 * Prints the machine's load, because wall-clock figures are only meaningful on an idle machine.
 */
import { loadavg } from 'node:os';
import { Appliance, eventually, executable, sleep } from '../e2e/harness.ts';
import { bareLoopMs, costPerPod, type Shape } from './scheduling/core.ts';

const NODES = [10, 100, 1_000, 5_000];
const SHAPES: readonly Shape[] = ['plain', 'spread', 'anti-affinity', 'preferred'];
const PODS = 1_500;
const SETTLE_MS = 5_000;
const numbers = process.argv.slice(2).map(Number).filter(Number.isFinite);
const [hollow = 1_000, replicas = 1_000] = numbers;
const load = (): string =>
  loadavg()
    .map((each) => each.toFixed(1))
    .join(' ');

interface Figures {
  readonly bare: number;
  readonly seconds: number;
  readonly rate: number;
  /** By subcommand: idle cores before, and CPU milliseconds per pod until the last one was bound. */
  readonly cpu: Readonly<Record<string, { readonly idle: number; readonly pod: number }>>;
}

function core(): void {
  console.log(`core: CPU time of a pod, load ${load()}`);
  console.log('nodes  shape          us/pod  pods/s  with 20 placed a node  x a bare loop');
  costPerPod(100, 0, 500, 'preferred');
  for (const nodes of NODES) {
    const bareMs = bareLoopMs(nodes);
    for (const shape of SHAPES) {
      const pods = Math.min(PODS, nodes * 100);
      const { cpuMs } = costPerPod(nodes, 0, pods, shape);
      const full = costPerPod(nodes, nodes * 20, pods, shape).cpuMs;
      const cells = [
        String(nodes).padEnd(6),
        shape.padEnd(14),
        (cpuMs * 1000).toFixed(0).padStart(6),
        (1000 / cpuMs).toFixed(0).padStart(7),
        `${(full * 1000).toFixed(0)} us`.padStart(22),
        (cpuMs / bareMs).toFixed(0).padStart(14),
      ];
      console.log(cells.join(' '));
    }
  }
}

async function throughApi(): Promise<void> {
  const appliance = await Appliance.create();
  const children: { kill(): boolean }[] = [];
  try {
    await appliance.start(300_000);
    const nodes = ['hollow', '--kubeconfig', appliance.kubeconfig, '--nodes', String(hollow), '--zones', '5'];
    children.push(appliance.spawnInside(executable, nodes));
    await eventually('hollow nodes', 300_000, async () => {
      const ready = (await appliance.kubectl(['get', 'nodes', '--no-headers'])).stdout.match(/^hollow-\d+ +Ready /gm);
      return ready?.length === hollow ? true : undefined;
    });
    // Wait until controllers and hosts have processed the new nodes.
    await sleep(SETTLE_MS);
    const child = `${import.meta.dirname}/scheduling/through-api.child.ts`;
    const begin = load();
    const ran = await appliance.inside(
      process.execPath,
      [child, appliance.kubeconfig, appliance.root, String(replicas)],
      {
        timeoutMs: 600_000,
      },
    );
    if (ran.code !== 0) throw new Error(ran.stderr);
    const { bare, seconds, rate, cpu } = JSON.parse(ran.stdout) as Figures;
    console.log(`api: ${hollow} hollow nodes, load ${begin} before, ${load()} after`);
    console.log(`deployment of ${replicas} scheduled in ${seconds.toFixed(1)} s`);
    console.log(`${rate.toFixed(0)} pods/s; bindings by hand ${bare.toFixed(0)}/s; ratio ${(rate / bare).toFixed(2)}`);
    for (const [name, { idle, pod }] of Object.entries(cpu)) {
      console.log(`CPU of ${name}: ${pod.toFixed(2)} ms a pod; idle before ${(idle * 100).toFixed(1)} % of a core`);
    }
  } finally {
    for (const child of children) child.kill();
    await appliance.stop();
  }
}

if (!process.argv.includes('api')) core();
if (!process.argv.includes('core')) await throughApi();
