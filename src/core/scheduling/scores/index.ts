/** All scorers with upstream's weights, and the choice among the best. */
import type { ClusterView } from '../cluster.ts';
import type { NodeInfo } from '../node-info.ts';
import type { PodInfo } from '../pod-info.ts';
import { balancedAllocation, imageLocality, leastAllocated, preferredNodes, taintPreference } from './node.ts';
import { podAffinityPreference, spreadPreference } from './pods.ts';
import type { Scorer } from './score.ts';

export const SCORERS: readonly Scorer[] = [
  taintPreference,
  preferredNodes,
  spreadPreference,
  podAffinityPreference,
  leastAllocated,
  balancedAllocation,
  imageLocality,
];

/** The weighted sum for each of `nodes`, in their order. */
export function scoreNodes(pod: PodInfo, nodes: readonly NodeInfo[], view: ClusterView): number[] {
  const totals = nodes.map(() => 0);
  for (const scorer of SCORERS) {
    const scores = scorer.score(pod, nodes, view);
    if (scores === undefined) continue;
    scores.forEach((score, index) => {
      totals[index] = (totals[index] ?? 0) + score * scorer.weight;
    });
  }
  return totals;
}

/** One of the best nodes, all of them with the same chance, or placement would always favour the same hosts. */
export function selectNode(
  pod: PodInfo,
  nodes: readonly NodeInfo[],
  view: ClusterView,
  random: () => number,
): NodeInfo | undefined {
  if (nodes.length <= 1) return nodes[0];
  const totals = scoreNodes(pod, nodes, view);
  const best = Math.max(...totals);
  const candidates = nodes.filter((_, index) => totals[index] === best);
  return candidates[Math.min(candidates.length - 1, Math.floor(random() * candidates.length))];
}
