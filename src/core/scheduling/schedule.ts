/** One pod, one decision: bind, make room, or say why not. */
import type { Cluster, ClusterView } from './cluster.ts';
import type { FilterName, Rejection } from './filters/filter.ts';
import { prepareFilters } from './filters/index.ts';
import type { NodeInfo } from './node-info.ts';
import type { PodInfo } from './pod-info.ts';
import { type DisruptionBudget, type Preemption, planPreemption } from './preemption.ts';
import { selectNode } from './scores/index.ts';

export interface ScheduleInput {
  readonly pod: PodInfo;
  readonly cluster: Cluster;
  readonly view: ClusterView;
  readonly budgets: readonly DisruptionBudget[];
  random(): number;
}

export type Decision =
  | { readonly kind: 'bind'; readonly node: string; readonly feasible: number }
  | {
      readonly kind: 'unschedulable';
      /** Upstream's text: event and PodScheduled condition carry it. */
      readonly message: string;
      /** Filters that objected somewhere: a later event counts only if it can change their mind. */
      readonly filters: ReadonlySet<FilterName>;
      readonly preemption: Preemption | undefined;
    };

export function schedulePod(input: ScheduleInput): Decision {
  const { pod, cluster, view } = input;
  if (view.nodes.length === 0) {
    return {
      kind: 'unschedulable',
      message: 'no nodes available to schedule pods',
      filters: new Set(),
      preemption: undefined,
    };
  }
  const rejections = new Map<string, Rejection>();
  const feasible: NodeInfo[] = [];
  const check = prepareFilters(pod, view);
  for (const node of view.nodes) {
    const rejection = check(node) ?? checkBesideNominated(pod, node, cluster, view);
    if (rejection === undefined) feasible.push(node);
    else rejections.set(node.name, rejection);
  }
  // Room was made on the nominated node: it is taken when it fits, whatever the scores say.
  const nominated = cluster.nominatedNode(pod.uid);
  const chosen =
    feasible.find((node) => node.name === nominated) ?? selectNode(pod, feasible, view, () => input.random());
  if (chosen !== undefined) return { kind: 'bind', node: chosen.name, feasible: feasible.length };
  const result = planPreemption(pod, cluster, view, rejections, input.budgets);
  const filters = new Set([...rejections.values()].map((rejection) => rejection.filter));
  const suffix = result.message === '' ? '' : ` preemption: ${result.message}`;
  return {
    kind: 'unschedulable',
    message: `${explain(view.nodes.length, rejections)}${suffix}`,
    filters,
    preemption: result.preemption,
  };
}

/** Room promised to equally or more important pods is not free. */
function checkBesideNominated(
  pod: PodInfo,
  node: NodeInfo,
  cluster: Cluster,
  view: ClusterView,
): Rejection | undefined {
  const promised = cluster
    .nominatedOn(node.name)
    .filter((each) => each.uid !== pod.uid && each.priority >= pod.priority);
  if (promised.length === 0) return undefined;
  const trial = node.copy();
  for (const each of promised) trial.add(each);
  const trialView: ClusterView = { ...view, nodes: view.nodes.map((each) => (each === node ? trial : each)) };
  return prepareFilters(pod, trialView)(trial);
}

/** `0/3 nodes are available: 1 Insufficient memory, 2 node(s) were unschedulable.` */
function explain(nodes: number, rejections: ReadonlyMap<string, Rejection>): string {
  const counts = new Map<string, number>();
  for (const rejection of rejections.values()) {
    // Upstream's PreFilter: no node was looked at.
    if (rejection.isOfPod === true) return `0/${nodes} nodes are available: ${rejection.reasons.join(', ')}.`;
    for (const reason of rejection.reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  const texts = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
  return `0/${nodes} nodes are available: ${texts.join(', ')}.`;
}
