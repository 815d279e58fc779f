/**
 * `npm run bench:netpolicy [-- POLICIES PODS]` measures the planner of network policies with POLICIES (1,000) policies
 * and PODS (5,000) pods, 100 of them on this node: the first program, a new pod, a changed policy and a relabelled
 * namespace, each including `nft -f` in a network namespace of its own. Prints a line for each figure.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import type { NetworkPolicy } from '../../src/api/generated/networking/v1.ts';
import type { PolicyPod } from '../../src/network/policies/core/compile.ts';
import { PolicyPlanner } from '../../src/network/policies/core/planner.ts';

const [policies, pods] = [Number(process.argv[2] ?? 1_000), Number(process.argv[3] ?? 5_000)];
if (process.env['HE_BENCH_NETNS'] === undefined) {
  const child = spawnSync('unshare', ['--net', process.execPath, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env: { ...process.env, HE_BENCH_NETNS: '1' },
  });
  process.exit(child.status ?? 1);
}

const NAMESPACES = 50;
const LOCAL = 100;
const ROUNDS = 200;

const podOf = (index: number, node = index < LOCAL ? 'n1' : 'n2'): PolicyPod => ({
  key: `ns${index % NAMESPACES}/p${index}`,
  namespace: `ns${index % NAMESPACES}`,
  labels: { app: `app${index % 20}`, tier: index % 3 === 0 ? 'front' : 'back' },
  ips: [`10.128.${index >> 8}.${index & 255}`, `fd00:128::${index.toString(16)}`],
  nodeName: node,
  ports: [{ name: 'web', protocol: 'tcp', port: 8080 }],
});
const policyOf = (index: number, port = 8080): NetworkPolicy => ({
  metadata: { namespace: `ns${index % NAMESPACES}`, name: `q${index}` },
  spec: {
    podSelector: index % 5 === 0 ? {} : { matchLabels: { app: `app${index % 20}` } },
    policyTypes: index % 3 === 0 ? ['Ingress', 'Egress'] : ['Ingress'],
    ingress: [
      { from: [{ podSelector: { matchLabels: { app: `app${index % 7}` } } }], ports: [{ port }, { port: 'web' }] },
      {
        from: [
          {
            namespaceSelector: { matchLabels: { team: `t${index % 5}` } },
            podSelector: { matchLabels: { tier: 'front' } },
          },
        ],
      },
      { from: [{ ipBlock: { cidr: '192.0.2.0/24', except: ['192.0.2.128/25'] } }] },
    ],
    egress: [{ to: [{ namespaceSelector: {} }], ports: [{ protocol: 'UDP', port: 53 }] }],
  },
});

const planner = new PolicyPlanner({ table: 'he-bench', nodeName: 'n1' });
const percentile = (values: number[], part: number): string =>
  (values.sort((left, right) => left - right)[Math.floor((values.length - 1) * part)] ?? 0).toFixed(2);

function measure(name: string, rounds: number, change: (round: number) => void): void {
  const plan: number[] = [];
  const apply: number[] = [];
  let lines = 0;
  for (let round = 0; round < rounds; round++) {
    const begin = performance.now();
    change(round);
    const program = planner.program();
    const planned = performance.now();
    execFileSync('nft', ['-f', '-'], { input: program });
    plan.push(planned - begin);
    apply.push(performance.now() - planned);
    lines += program.split('\n').length - 1;
  }
  const each = `plan p50 ${percentile(plan, 0.5)} p99 ${percentile(plan, 0.99)} ms`;
  console.log(
    `${name}: ${each}; nft -f p50 ${percentile(apply, 0.5)} p99 ${percentile(apply, 0.99)} ms; ${(lines / rounds).toFixed(1)} lines`,
  );
}

measure(`first program of ${policies} policies, ${pods} pods, ${LOCAL} of this node`, 1, () => {
  for (let index = 0; index < NAMESPACES; index++) planner.setNamespace(`ns${index}`, { team: `t${index % 5}` });
  for (let index = 0; index < pods; index++) planner.setPod(podOf(index));
  for (let index = 0; index < policies; index++) planner.setPolicy(policyOf(index));
});
measure('a pod of another node arrives', ROUNDS, (round) => planner.setPod(podOf(pods + round, 'n2')));
measure('a pod of this node arrives', ROUNDS, (round) => planner.setPod(podOf(pods + ROUNDS + round, 'n1')));
measure('a policy changes', ROUNDS, (round) => planner.setPolicy(policyOf(round % policies, 9_000 + round)));
measure('a namespace is relabelled', ROUNDS, (round) => {
  planner.setNamespace(`ns${round % NAMESPACES}`, { team: `t${(round + 1) % 5}` });
});
const memory = process.memoryUsage();
console.log(`heap ${(memory.heapUsed / 2 ** 20).toFixed(0)} MB`);
