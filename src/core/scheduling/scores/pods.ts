/** Scorers that look at where other pods are. Source: upstream's interpodaffinity and podtopologyspread plug-ins. */
import type { ClusterView } from '../cluster.ts';
import type { NodeInfo } from '../node-info.ts';
import { type AffinityTerm, type PodInfo, termSelects } from '../pod-info.ts';
import { countSelected, isEligible, type SpreadConstraint, spreadConstraints } from '../topology.ts';
import { MAX_SCORE, type Scorer } from './score.ts';

/** What a required affinity of an existing pod adds for a newcomer it selects. Upstream's default. */
const HARD_AFFINITY_WEIGHT = 1;

export const podAffinityPreference: Scorer = {
  name: 'InterPodAffinity',
  weight: 2,
  score: (pod, nodes, view) => {
    const sums = new Map<string, Map<string, number>>();
    const credit = (node: NodeInfo, term: AffinityTerm, weight: number): void => {
      const domain = node.label(term.topologyKey);
      if (domain === undefined) return;
      let domains = sums.get(term.topologyKey);
      if (domains === undefined) {
        domains = new Map();
        sums.set(term.topologyKey, domains);
      }
      domains.set(domain, (domains.get(domain) ?? 0) + weight);
    };
    for (const node of view.nodes) {
      for (const other of node.pods.values())
        creditPair(pod, other, view, (term, weight) => credit(node, term, weight));
    }
    if (sums.size === 0) return undefined;
    const scores = nodes.map((node) => {
      let score = 0;
      for (const [key, domains] of sums) score += domains.get(node.label(key) ?? '') ?? 0;
      return score;
    });
    const max = Math.max(...scores);
    const min = Math.min(...scores);
    return scores.map((score) => (max === min ? 0 : Math.floor((MAX_SCORE * (score - min)) / (max - min))));
  },
};

function creditPair(
  pod: PodInfo,
  other: PodInfo,
  view: ClusterView,
  credit: (term: AffinityTerm, weight: number) => void,
): void {
  const labelsOf = view.namespaceLabels;
  for (const { term, weight } of pod.preferredAffinity) if (termSelects(term, other, labelsOf)) credit(term, weight);
  for (const { term, weight } of pod.preferredAntiAffinity) {
    if (termSelects(term, other, labelsOf)) credit(term, -weight);
  }
  for (const term of other.affinity) if (termSelects(term, pod, labelsOf)) credit(term, HARD_AFFINITY_WEIGHT);
  for (const { term, weight } of other.preferredAffinity) if (termSelects(term, pod, labelsOf)) credit(term, weight);
  for (const { term, weight } of other.preferredAntiAffinity) {
    if (termSelects(term, pod, labelsOf)) credit(term, -weight);
  }
}

export const spreadPreference: Scorer = {
  name: 'PodTopologySpread',
  weight: 2,
  score: (pod, nodes, view) => {
    const own = spreadConstraints(pod, 'ScheduleAnyway');
    const isOwn = own.length > 0 || (pod.pod.spec?.topologySpreadConstraints?.length ?? 0) > 0;
    const constraints = isOwn ? own : defaultConstraints(pod, view);
    if (constraints.length === 0) return undefined;
    // The pod's own constraints speak only of nodes that have all the keys; the defaults do with what there is.
    const takesPart = (node: NodeInfo): boolean =>
      !isOwn || constraints.every((constraint) => node.label(constraint.topologyKey) !== undefined);
    const raw = nodes.map(() => 0);
    for (const constraint of constraints) {
      const counts = countDomains(constraint, pod, nodes, view, takesPart);
      const weight = Math.log(counts.size + 2);
      nodes.forEach((node, index) => {
        const domain = node.label(constraint.topologyKey);
        if (domain === undefined || !takesPart(node)) return;
        raw[index] = (raw[index] ?? 0) + (counts.get(domain) ?? 0) * weight + (constraint.maxSkew - 1);
      });
    }
    const scores = raw.map(Math.round);
    const counted = scores.filter((_, index) => takesPart(nodes[index] as NodeInfo));
    const max = Math.max(0, ...counted);
    const min = counted.length === 0 ? 0 : Math.min(...counted);
    return scores.map((score, index) => {
      if (!takesPart(nodes[index] as NodeInfo)) return 0;
      return max === 0 ? MAX_SCORE : Math.floor((MAX_SCORE * (max + min - score)) / max);
    });
  },
};

/** Domains that feasible nodes are in, with the pods selected in the whole of each. */
function countDomains(
  constraint: SpreadConstraint,
  pod: PodInfo,
  feasible: readonly NodeInfo[],
  view: ClusterView,
  takesPart: (node: NodeInfo) => boolean,
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const node of feasible) {
    const domain = node.label(constraint.topologyKey);
    if (domain !== undefined && takesPart(node)) counts.set(domain, 0);
  }
  for (const node of view.nodes) {
    const domain = node.label(constraint.topologyKey);
    const count = domain === undefined ? undefined : counts.get(domain);
    if (domain === undefined || count === undefined || !takesPart(node) || !isEligible(constraint, pod.pod, node)) {
      continue;
    }
    counts.set(domain, count + countSelected(constraint, node));
  }
  return counts;
}

/**
 * Replicas of one service or set are spread over hosts and zones when the pod says nothing itself. Upstream's system
 * defaults.
 */
function defaultConstraints(pod: PodInfo, view: ClusterView): SpreadConstraint[] {
  const isPeer = view.peersOf?.(pod.pod);
  if (isPeer === undefined) return [];
  const constraint = (topologyKey: string, maxSkew: number): SpreadConstraint => ({
    topologyKey,
    maxSkew,
    minDomains: 1,
    selects: (other) =>
      other.namespace === pod.namespace && other.pod.metadata?.deletionTimestamp === undefined && isPeer(other),
    selectsSelf: true,
    honorsAffinity: true,
    honorsTaints: false,
  });
  return [constraint('kubernetes.io/hostname', 3), constraint('topology.kubernetes.io/zone', 5)];
}
