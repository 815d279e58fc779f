/**
 * `npm run bench:pure-node -- [SECONDS] [PODS]` measures the idle cost of a host that is only a node. It runs the
 * packaged executable and joins a master in another network namespace by token. Prints memory (PSS) and CPU of each of
 * its processes, with PODS (0) running pods. Exits with 1 if a goal is missed.
 */
import { readFile } from 'node:fs/promises';
import { eventually, sleep } from '../e2e/harness.ts';
import { helloImage, importHelloImage } from '../e2e/images.ts';
import { Lan } from '../e2e/lan.ts';

const GOAL_PSS_MB = 110;
const GOAL_CPU_SHARE = 0.01;
/** Time in which the garbage of the join is collected. */
const SETTLE_MS = 60_000;
const TICKS_PER_SECOND = 100;
const [seconds = 60, pods = 0] = process.argv.slice(2).map(Number);

async function pssMb(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
  return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) / 1024;
}

async function cpuSeconds(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const [user = 0, system = 0] = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return (user + system) / TICKS_PER_SECOND;
}

const lan = await Lan.create();
let missed = 0;
try {
  const master = await lan.add({ name: 'h1', address: '10.88.0.1' });
  await master.start();
  const flags = ['token', 'create', '-o', 'json', '--root', master.root, '--roles', 'node'];
  const { token, server, caHash } = JSON.parse((await master.hyperedge(flags)).stdout);
  const config = `join: {server: '${server}', token: ${token}, caHash: '${caHash}'}\n`;
  const node = await lan.add({ name: 'h2', address: '10.88.0.2', config });
  await importHelloImage(node, node.root);
  node.launch();
  await eventually('h2 Ready', 60_000, async () =>
    /^h2 +Ready /m.test((await master.kubectl(['get', 'nodes', '--no-headers'])).stdout) ? true : undefined,
  );
  const container = { name: 'c', image: helloImage, command: ['sleep', '100000'], imagePullPolicy: 'Never' };
  for (let n = 0; n < pods; n++) {
    const spec = { nodeName: 'h2', terminationGracePeriodSeconds: 0, containers: [container] };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: `idle-${n}` }, spec };
    await master.must(['create', '-f', '-'], { input: JSON.stringify(pod) });
  }
  await eventually('pods Running', 120_000, async () =>
    (await master.must(['get', 'pods', '--no-headers'])).split('Running').length - 1 === pods ? true : undefined,
  );
  await sleep(SETTLE_MS);
  const own = (await node.processes()).filter(({ command }) => !command.includes('conmon'));
  const before = await Promise.all(own.map(({ pid }) => cpuSeconds(pid)));
  await sleep(seconds * 1_000);
  let pss = 0;
  let cpu = 0;
  for (const [index, { pid, command }] of own.entries()) {
    const share = ((await cpuSeconds(pid)) - (before[index] ?? 0)) / seconds;
    const mb = await pssMb(pid);
    pss += mb;
    cpu += share;
    console.log(`${mb.toFixed(1)} MB  ${(share * 100).toFixed(2)} % of a core  ${command.slice(0, 100)}`);
  }
  for (const [what, met, value] of [
    [`memory (PSS), goal ${GOAL_PSS_MB} MB`, pss <= GOAL_PSS_MB, `${pss.toFixed(0)} MB`],
    [`idle CPU, goal ${GOAL_CPU_SHARE * 100} %`, cpu <= GOAL_CPU_SHARE, `${(cpu * 100).toFixed(2)} %`],
  ] as const) {
    if (!met) missed++;
    console.log(`${met ? 'met   ' : 'MISSED'} ${what}: ${value}, ${pods} pods`);
  }
} finally {
  await lan.stop();
}
process.exit(missed === 0 ? 0 : 1);
