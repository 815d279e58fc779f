/**
 * Preemption: makes room for a pod by evicting less important pods. Source: upstream's defaultpreemption plug-in,
 * KEP-268 (priority and preemption), KEP-902 (preemptionPolicy).
 */

import type { Pod } from '../../api/generated/core/v1.ts';
import type { PodInfo } from '../../api/podspec/scheduling/pod-info.ts';
import type { NodeName } from '../../base/brand.ts';
import { type LabelSelector, matchesLabels } from '../../base/selector.ts';
import type { Cluster, ClusterView } from './cluster.ts';
import type { Rejection } from './filters/filter.ts';
import { prepareFilters } from './filters/index.ts';
import type { NodeInfo } from './node-info.ts';
import type { Profile } from './profile.ts';
import { viewWith } from './trial-view.ts';

/** Fields of a PodDisruptionBudget that preemption needs. */
export interface DisruptionBudget {
  readonly namespace: string;
  readonly selector: LabelSelector;
  readonly disruptionsAllowed: number;
  /** Names of pods whose disruption is already deducted from `disruptionsAllowed`. */
  readonly disrupted: ReadonlySet<string>;
}

export interface Preemption {
  readonly node: NodeName;
  readonly victims: readonly PodInfo[];
  /** Less important pods that are nominated to the node. Their nominations are cleared. */
  readonly displaced: readonly PodInfo[];
}

export interface PreemptionResult {
  readonly preemption: Preemption | undefined;
  /** Message for the PodScheduled condition, without the prefix "preemption:". */
  readonly message: string;
}

/** A node with the pods to evict and the number of violated disruption budgets. */
export interface PreemptionCandidate {
  readonly node: NodeInfo;
  readonly victims: readonly PodInfo[];
  readonly violations: number;
}

export interface PreemptionInput {
  readonly pod: PodInfo;
  readonly cluster: Cluster;
  readonly view: ClusterView;
  readonly profile: Profile;
  readonly rejections: ReadonlyMap<string, Rejection>;
  readonly budgets: readonly DisruptionBudget[];
}

export function planPreemption(input: PreemptionInput): PreemptionResult {
  const { candidates, message } = preemptionCandidates(input);
  return { preemption: choosePreemption(input, candidates), message };
}

/**
 * Nodes on which preemption makes room for the pod. If there are no such nodes, `message` is the reason; otherwise
 * `message` is empty.
 */
export function preemptionCandidates(input: PreemptionInput): {
  readonly candidates: readonly PreemptionCandidate[];
  readonly message: string;
} {
  const { pod, cluster, view, profile, rejections } = input;
  const refusal = whyNotEligible(pod, cluster, rejections);
  if (refusal !== undefined) return { candidates: [], message: refusal };
  const { minCandidateNodesAbsolute, minCandidateNodesPercentage } = profile.args;
  const enough = Math.max(
    minCandidateNodesAbsolute,
    Math.floor((view.nodes.length * minCandidateNodesPercentage) / 100),
  );
  const reasons = new Map<string, number>();
  const count = (reason: string): void => {
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  };
  const candidates: PreemptionCandidate[] = [];
  for (const node of view.nodes) {
    if (candidates.length >= enough) break;
    const rejection = rejections.get(node.name);
    if (rejection === undefined || rejection.unresolvable) {
      count('Preemption is not helpful for scheduling');
      continue;
    }
    const candidate = dryRun(input, node);
    if (candidate === undefined) count('No preemption victims found for incoming pod');
    else candidates.push(candidate);
  }
  if (candidates.length > 0) return { candidates, message: '' };
  const texts = [...reasons].map(([reason, times]) => `${times} ${reason}`).sort();
  return { candidates, message: `0/${view.nodes.length} nodes are available: ${texts.join(', ')}.` };
}

/** Selects the candidate with the least disruption; undefined if there are no candidates. */
export function choosePreemption(
  { pod, cluster }: Pick<PreemptionInput, 'pod' | 'cluster'>,
  candidates: readonly PreemptionCandidate[],
): Preemption | undefined {
  const best = candidates.toSorted(compareCandidates)[0];
  if (best === undefined) return undefined;
  const displaced = cluster.nominatedOn(best.node.name).filter((each) => each.priority < pod.priority);
  return { node: best.node.name, victims: best.victims, displaced };
}

function whyNotEligible(
  pod: PodInfo,
  cluster: Cluster,
  rejections: ReadonlyMap<string, Rejection>,
): string | undefined {
  if (pod.pod.spec?.preemptionPolicy === 'Never') return 'not eligible due to preemptionPolicy=Never.';
  const nominated = cluster.nominatedNode(pod.uid);
  const node = nominated === undefined ? undefined : cluster.node(nominated);
  if (node === undefined || rejections.get(node.name)?.unresolvable === true) return undefined;
  for (const other of node.pods.values()) {
    if (other.priority < pod.priority && isBeingPreempted(other.pod)) {
      return 'not eligible due to a terminating pod on the nominated node.';
    }
  }
  return undefined;
}

function isBeingPreempted(pod: Pod): boolean {
  return (
    pod.metadata?.deletionTimestamp !== undefined &&
    pod.status?.conditions?.some(
      (condition) =>
        condition.type === 'DisruptionTarget' &&
        condition.status === 'True' &&
        condition.reason === 'PreemptionByScheduler',
    ) === true
  );
}

/**
 * Pods to evict from the node so that the pod fits; undefined if evictions do not suffice. Removes all less important
 * pods, and then restores as many of them as possible, beginning with the most important one.
 */
function dryRun(
  { pod, cluster, view, profile, budgets }: PreemptionInput,
  node: NodeInfo,
): PreemptionCandidate | undefined {
  const trial = node.copy();
  const removable = [...node.pods.values()].filter((other) => other.priority < pod.priority);
  if (removable.length === 0) return undefined;
  for (const other of removable) trial.remove(other.uid);
  for (const other of cluster.nominatedOn(node.name)) {
    if (other.uid !== pod.uid && other.priority >= pod.priority) trial.add(other);
  }
  const fits = (): boolean => prepareFilters(profile.filters, pod, viewWith(view, node, trial))(trial) === undefined;
  if (!fits()) return undefined;
  const { violating, others } = splitByBudget(removable.sort(byImportance), budgets);
  const victims: PodInfo[] = [];
  let violations = 0;
  const reprieve = (other: PodInfo): boolean => {
    trial.add(other);
    if (fits()) return true;
    trial.remove(other.uid);
    victims.push(other);
    return false;
  };
  for (const other of violating) if (!reprieve(other)) violations++;
  for (const other of others) reprieve(other);
  return { node, victims: victims.sort(byImportance), violations };
}

function splitByBudget(
  pods: readonly PodInfo[],
  budgets: readonly DisruptionBudget[],
): { readonly violating: PodInfo[]; readonly others: PodInfo[] } {
  const allowed = budgets.map((budget) => budget.disruptionsAllowed);
  const violating: PodInfo[] = [];
  const others: PodInfo[] = [];
  for (const pod of pods) {
    let violates = false;
    budgets.forEach((budget, index) => {
      if (budget.namespace !== pod.namespace || budget.selector.requirements.length === 0) return;
      if (!matchesLabels(budget.selector, pod.pod.metadata?.labels)) return;
      if (budget.disrupted.has(pod.pod.metadata?.name ?? '')) return;
      const left = (allowed[index] ?? 0) - 1;
      allowed[index] = left;
      if (left < 0) violates = true;
    });
    (violates ? violating : others).push(pod);
  }
  return { violating, others };
}

/** Orders pods by importance: higher priority first, then earlier start. */
export function byImportance(a: PodInfo, b: PodInfo): number {
  return b.priority - a.priority || startedMs(a) - startedMs(b);
}

/** Orders candidates by disruption: the candidate with the least disruption comes first. */
function compareCandidates(a: PreemptionCandidate, b: PreemptionCandidate): number {
  return (
    a.violations - b.violations ||
    highest(a) - highest(b) ||
    sumOfPriorities(a) - sumOfPriorities(b) ||
    a.victims.length - b.victims.length ||
    earliestStartMs(b) - earliestStartMs(a)
  );
}

const highest = (candidate: PreemptionCandidate): number => candidate.victims[0]?.priority ?? Number.NEGATIVE_INFINITY;

/** Sum of the priorities of the victims. The offset makes every victim count, even with a negative priority. */
const sumOfPriorities = (candidate: PreemptionCandidate): number =>
  candidate.victims.reduce((sum, victim) => sum + victim.priority + 2 ** 31, 0);

function earliestStartMs(candidate: PreemptionCandidate): number {
  const top = highest(candidate);
  return Math.min(...candidate.victims.filter((victim) => victim.priority === top).map(startedMs));
}

function startedMs(pod: PodInfo): number {
  const time = Date.parse(pod.pod.status?.startTime ?? '');
  return Number.isNaN(time) ? Number.MAX_SAFE_INTEGER : time;
}
