/** The common shape of scorers: raw numbers per node, then brought to 0 … 100. */
import type { ClusterView } from '../cluster.ts';
import type { NodeInfo } from '../node-info.ts';
import type { PodInfo } from '../pod-info.ts';

export const MAX_SCORE = 100;

export interface Scorer {
  readonly name: string;
  /** Upstream's default weight. */
  readonly weight: number;
  /** Scores of the feasible nodes, in their order, 0 … 100; undefined: has no opinion about this pod. */
  score(pod: PodInfo, nodes: readonly NodeInfo[], view: ClusterView): number[] | undefined;
}

/** Scales so that the largest becomes 100 (and, reversed, the smallest the best). */
export function normalize(scores: readonly number[], reverse: boolean): number[] {
  const max = Math.max(0, ...scores);
  if (max === 0) return scores.map(() => (reverse ? MAX_SCORE : 0));
  return scores.map((score) => {
    const scaled = Math.floor((MAX_SCORE * score) / max);
    return reverse ? MAX_SCORE - scaled : scaled;
  });
}
