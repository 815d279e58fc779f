/**
 * Decides about one pod: a node, a preemption, or the reason why the pod cannot be scheduled. The steps are exported so
 * that callers can call extenders between them.
 */

import type { PodInfo } from '../../api/podspec/scheduling/pod-info.ts';
import type { NodeName } from '../../base/brand.ts';
import type { Cluster, ClusterView } from './cluster.ts';
import type { FilterName, Rejection } from './filters/filter.ts';
import { prepareFilters } from './filters/index.ts';
import type { NodeInfo } from './node-info.ts';
import { type DisruptionBudget, type Preemption, planPreemption } from './preemption.ts';
import { feasibleNodesToFind, type Profile } from './profile.ts';
import { pickBest, scoreNodes } from './scores/index.ts';
import { viewWith } from './trial-view.ts';

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
  /** Upstream's message for the event and the PodScheduled condition. */
  readonly message: string;
  /** Filters that have rejected a node. Only events that can change the result of one of them requeue the pod. */
  readonly filters: ReadonlySet<FilterName>;
  readonly preemption: Preemption | undefined;
}

export type Decision = { readonly kind: 'bind'; readonly node: NodeName; readonly feasible: number } | Unschedulable;

export function schedulePod(input: ScheduleInput): Decision {
  const found = findNodes(input);
  const chosen = chooseNode(input, found.feasible);
  return chosen === undefined
    ? unschedulableMessage(input, found.rejections)
    : { kind: 'bind', node: chosen.name, feasible: found.feasible.length };
}

/** Finds nodes that pass all filters. In large clusters, the search ends when enough nodes are found. */
export function findNodes({ pod, cluster, view, profile }: ScheduleInput): FoundNodes {
  const rejections = new Map<string, Rejection>();
  const feasible: NodeInfo[] = [];
  const check = prepareFilters(profile.filters, pod, view);
  const passes = (node: NodeInfo): boolean => {
    const rejection = check(node) ?? checkWithNominated(pod, node, cluster, view, profile);
    if (rejection === undefined) feasible.push(node);
    else rejections.set(node.name, rejection);
    return rejection === undefined;
  };
  // Preemption has made room on the nominated node. If the pod fits there, the node is selected without comparing
  // scores.
  const nominated = cluster.nominatedNode(pod.uid);
  const nominatedNode = nominated === undefined ? undefined : cluster.node(nominated);
  if (nominatedNode !== undefined && passes(nominatedNode)) return { feasible, rejections };
  const { nodes } = view;
  const enough = feasibleNodesToFind(nodes.length, profile.percentageOfNodesToScore);
  const begin = cluster.cursor;
  let visited = 0;
  for (; visited < nodes.length && feasible.length < enough; visited++) {
    const node = nodes[(begin + visited) % nodes.length];
    if (node !== undefined && node !== nominatedNode) passes(node);
  }
  cluster.moveCursor(visited);
  return { feasible, rejections };
}

/**
 * Selects the best feasible node.
 *
 * @param extra Additional score by name of the node.
 */
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

/** Result for a pod that fits on no node. If `mayPreempt` is false, preemption is not tried. */
export function unschedulableMessage(
  input: ScheduleInput,
  rejections: ReadonlyMap<string, Rejection>,
  { mayPreempt = true }: { readonly mayPreempt?: boolean } = {},
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

/** Checks a node. Resources of nominated pods that are equally or more important count as used. */
function checkWithNominated(
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

/** Message such as `0/3 nodes are available: 1 Insufficient memory, 2 node(s) were unschedulable.` */
function explain(nodes: number, rejections: ReadonlyMap<string, Rejection>): string {
  const counts = new Map<string, number>();
  for (const rejection of rejections.values()) {
    // A rejection that concerns every node corresponds to a rejection in upstream's PreFilter.
    if (rejection.isOfPod === true) return `0/${nodes} nodes are available: ${rejection.reasons.join(', ')}.`;
    for (const reason of rejection.reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  const texts = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
  return `0/${nodes} nodes are available: ${texts.join(', ')}.`;
}
