/** All scorers with upstream's weights, and the selection among the best nodes. */

import type { PodInfo } from '../../../api/podspec/scheduling/pod-info.ts';
import type { ClusterView } from '../cluster.ts';
import type { NodeInfo } from '../node-info.ts';
import { imageLocality, preferredNodes, taintPreference } from './node.ts';
import { podAffinityPreference } from './pods.ts';
import { balancedAllocation, resourcesFit } from './resources.ts';
import type { Scorer, ScorerFactory } from './score.ts';
import { spreadPreference } from './spread.ts';

export const SCORERS = {
  TaintToleration: { weight: 3, make: () => taintPreference },
  NodeAffinity: { weight: 2, make: preferredNodes },
  PodTopologySpread: { weight: 2, make: spreadPreference },
  InterPodAffinity: { weight: 2, make: podAffinityPreference },
  NodeResourcesFit: { weight: 1, make: resourcesFit },
  NodeResourcesBalancedAllocation: { weight: 1, make: balancedAllocation },
  ImageLocality: { weight: 1, make: () => imageLocality },
} as const satisfies Readonly<Record<string, { readonly weight: number; readonly make: ScorerFactory }>>;

export type ScorerName = keyof typeof SCORERS;

export interface WeightedScorer {
  readonly weight: number;
  readonly score: Scorer;
}

/** Weighted sum of all scores for each node, in the order of `nodes`. */
export function scoreNodes(
  scorers: readonly WeightedScorer[],
  pod: PodInfo,
  nodes: readonly NodeInfo[],
  view: ClusterView,
): number[] {
  const totals = nodes.map(() => 0);
  for (const { weight, score } of scorers) {
    const scores = score(pod, nodes, view);
    if (scores === undefined) continue;
    for (let index = 0; index < totals.length; index++) {
      totals[index] = (totals[index] ?? 0) + (scores[index] ?? 0) * weight;
    }
  }
  return totals;
}

/** Selects one of the best nodes at random, because a fixed order would always prefer the same hosts. */
export function pickBest(
  nodes: readonly NodeInfo[],
  totals: readonly number[],
  random: () => number,
): NodeInfo | undefined {
  const best = totals.reduce((most, total) => Math.max(most, total), Number.NEGATIVE_INFINITY);
  const candidates = nodes.filter((_, index) => totals[index] === best);
  return candidates[Math.min(candidates.length - 1, Math.floor(random() * candidates.length))];
}
