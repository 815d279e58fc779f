/**
 * One pod, one decision: bind, make room, or say why not. The steps are exported for cycles that consult extenders in
 * between.
 */
import type { Cluster, ClusterView } from './cluster.ts';
import type { FilterName, Rejection } from './filters/filter.ts';
import { prepareFilters } from './filters/index.ts';
import type { NodeInfo } from './node-info.ts';
import type { PodInfo } from './pod-info.ts';
import { type DisruptionBudget, type Preemption, planPreemption } from './preemption.ts';
import { feasibleNodesToFind, type Profile } from './profile.ts';
import { pickBest, scoreNodes } from './scores/index.ts';
import { viewWith } from './trial.ts';

export interface ScheduleInput {
  readonly pod: PodInfo;
  readonly cluster: Cluster;
  readonly view: ClusterView;
  readonly profile: Profile;
  readonly budgets: readonly DisruptionBudget[];
  random(): number;
}

export interface FoundNodes {
  readonly feasible: readonly NodeInfo[];
  readonly rejections: ReadonlyMap<string, Rejection>;
}

export interface Unschedulable {
  readonly kind: 'unschedulable';
  /** Upstream's text: event and PodScheduled condition carry it. */
  readonly message: string;
  /** Filters that objected somewhere: a later event counts only if it can change their mind. */
  readonly filters: ReadonlySet<FilterName>;
  readonly preemption: Preemption | undefined;
}

export type Decision = { readonly kind: 'bind'; readonly node: string; readonly feasible: number } | Unschedulable;

export function schedulePod(input: ScheduleInput): Decision {
  const found = findNodes(input);
  const chosen = chooseNode(input, found.feasible);
  return chosen === undefined
    ? unschedulable(input, found.rejections)
    : { kind: 'bind', node: chosen.name, feasible: found.feasible.length };
}

/** Nodes that pass all filters; in large clusters the search ends when enough are found. */
export function findNodes({ pod, cluster, view, profile }: ScheduleInput): FoundNodes {
  const rejections = new Map<string, Rejection>();
  const feasible: NodeInfo[] = [];
  const check = prepareFilters(profile.filters, pod, view);
  const judge = (node: NodeInfo): boolean => {
    const rejection = check(node) ?? checkBesideNominated(pod, node, cluster, view, profile);
    if (rejection === undefined) feasible.push(node);
    else rejections.set(node.name, rejection);
    return rejection === undefined;
  };
  // Room was made on the nominated node: it is taken when it fits, whatever the scores say.
  const nominated = cluster.nominatedNode(pod.uid);
  const promised = nominated === undefined ? undefined : cluster.node(nominated);
  if (promised !== undefined && judge(promised)) return { feasible, rejections };
  const { nodes } = view;
  const enough = feasibleNodesToFind(nodes.length, profile.percentageOfNodesToScore);
  const begin = cluster.cursor;
  let visited = 0;
  for (; visited < nodes.length && feasible.length < enough; visited++) {
    const node = nodes[(begin + visited) % nodes.length];
    if (node !== undefined && node !== promised) judge(node);
  }
  cluster.moveCursor(visited);
  return { feasible, rejections };
}

/** `extra` adds to the score of a node, by name. */
export function chooseNode(
  { pod, view, profile, random }: ScheduleInput,
  feasible: readonly NodeInfo[],
  extra?: ReadonlyMap<string, number>,
): NodeInfo | undefined {
  if (feasible.length <= 1) return feasible[0];
  const totals = scoreNodes(profile.scorers, pod, feasible, view);
  if (extra !== undefined) {
    feasible.forEach((node, index) => {
      totals[index] = (totals[index] ?? 0) + (extra.get(node.name) ?? 0);
    });
  }
  return pickBest(feasible, totals, random);
}

/** The pod fits nowhere; `mayPreempt` false: nor may it make room. */
export function unschedulable(
  input: ScheduleInput,
  rejections: ReadonlyMap<string, Rejection>,
  mayPreempt = true,
): Unschedulable {
  const { view } = input;
  if (view.nodes.length === 0) {
    const message = 'no nodes available to schedule pods';
    return { kind: 'unschedulable', message, filters: new Set(), preemption: undefined };
  }
  const result =
    mayPreempt && input.profile.preempts
      ? planPreemption({ ...input, rejections })
      : { preemption: undefined, message: '' };
  const filters = new Set([...rejections.values()].map((rejection) => rejection.filter));
  const suffix = result.message === '' ? '' : ` preemption: ${result.message}`;
  const message = `${explain(view.nodes.length, rejections)}${suffix}`;
  return { kind: 'unschedulable', message, filters, preemption: result.preemption };
}

/** Room promised to equally or more important pods is not free. */
function checkBesideNominated(
  pod: PodInfo,
  node: NodeInfo,
  cluster: Cluster,
  view: ClusterView,
  profile: Profile,
): Rejection | undefined {
  if (!cluster.hasNominations) return undefined;
  const promised = cluster
    .nominatedOn(node.name)
    .filter((each) => each.uid !== pod.uid && each.priority >= pod.priority);
  if (promised.length === 0) return undefined;
  const trial = node.copy();
  for (const each of promised) trial.add(each);
  return prepareFilters(profile.filters, pod, viewWith(view, node, trial))(trial);
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
