/** Decisions of the scheduler core, without API and I/O. */
import type { Node, Pod, PodSpec } from '../../../src/api/generated/core/v1.ts';
import { podInfoOf } from '../../../src/api/podspec/scheduling/pod-info.ts';
import { labelSelectorOf } from '../../../src/base/selector.ts';
import { Cluster } from '../../../src/scheduler/core/cluster.ts';
import { DEFAULT_PROFILE, profileOf } from '../../../src/scheduler/core/profile.ts';
import { SchedulingQueue } from '../../../src/scheduler/core/queue.ts';
import { schedulePod } from '../../../src/scheduler/core/schedule.ts';

export type Shape = 'plain' | 'spread' | 'anti-affinity' | 'preferred';

const ZONES = 5;
const web = { matchLabels: { app: 'web' } };
const HOSTNAME = 'kubernetes.io/hostname';
const SPECS: Readonly<Record<Shape, Partial<PodSpec>>> = {
  plain: {},
  spread: {
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'topology.kubernetes.io/zone',
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: web,
      },
    ],
  },
  'anti-affinity': {
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: HOSTNAME, labelSelector: { matchLabels: { app: 'web', slot: '0' } } },
        ],
      },
    },
  },
  preferred: {
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 100, podAffinityTerm: { topologyKey: HOSTNAME, labelSelector: web } },
        ],
      },
    },
  },
};

function node(index: number): Node {
  const name = `hollow-${index}`;
  return {
    metadata: { name, labels: { [HOSTNAME]: name, 'topology.kubernetes.io/zone': `z${index % ZONES}` } },
    status: { allocatable: { cpu: '32', memory: '64Gi', pods: '250' } },
  };
}

function pod(index: number, shape: Shape): Pod {
  return {
    metadata: {
      name: `p-${index}`,
      namespace: 'default',
      uid: `uid-${index}`,
      labels: { app: 'web', slot: String(1 + (index % 7)) },
    },
    spec: {
      containers: [{ name: 'c', image: 'web:1', resources: { requests: { cpu: '10m', memory: '16Mi' } } }],
      ...SPECS[shape],
    },
  };
}

export interface Cost {
  /** Wall-clock milliseconds per pod. */
  readonly wallMs: number;
  /** CPU milliseconds per pod, which do not depend on other processes. */
  readonly cpuMs: number;
}

/** Cost of scheduling one pod, from the queue to the assumption, with `placed` pods already placed. */
export function costPerPod(nodes: number, placed: number, pods: number, shape: Shape): Cost {
  const cluster = new Cluster();
  for (let index = 0; index < nodes; index++) cluster.setNode(node(index));
  for (let index = 0; index < placed; index++) {
    const each = pod(1_000_000 + index, shape);
    cluster.setPod({ ...each, spec: { containers: [], ...each.spec, nodeName: `hollow-${index % nodes}` } });
  }
  const profile = profileOf(DEFAULT_PROFILE);
  const queue = new SchedulingQueue();
  let state = 1;
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
  const selector = labelSelectorOf(web);
  const support = { namespaceLabels: () => ({}), volumes: undefined, peersOf: () => [selector] };
  const waiting = Array.from({ length: pods }, (_, index) => pod(index, shape));
  const startedMs = performance.now();
  const cpu = process.cpuUsage();
  for (const each of waiting) queue.add(podInfoOf(each), 0);
  for (let next = queue.pop(0); next !== undefined; next = queue.pop(0)) {
    const decision = schedulePod({ pod: next, cluster, view: cluster.view(support), profile, budgets: [], random });
    if (decision.kind !== 'bind') throw new Error(`${next.key}: ${decision.message}`);
    cluster.assume(next, decision.node);
    queue.remove(next.uid);
  }
  const { user, system } = process.cpuUsage(cpu);
  return { wallMs: (performance.now() - startedMs) / pods, cpuMs: (user + system) / 1000 / pods };
}

/** Milliseconds of a loop that reads one label and one sum of every node, the lower bound for any scheduler. */
export function bareLoopMs(nodes: number): number {
  const cluster = new Cluster();
  for (let index = 0; index < nodes; index++) cluster.setNode(node(index));
  const rounds = Math.ceil(200_000 / nodes);
  let sum = 0;
  const cpu = process.cpuUsage();
  for (let round = 0; round < rounds; round++) {
    for (const each of cluster.nodes) sum += (each.requested.get('cpu') ?? 0) + (each.label(HOSTNAME)?.length ?? 0);
  }
  const { user, system } = process.cpuUsage(cpu);
  if (sum === 0) throw new Error('nodes have no names');
  return (user + system) / 1000 / rounds;
}
