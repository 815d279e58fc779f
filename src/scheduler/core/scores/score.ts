/** Common types of scorers. A scorer returns a number per node, which is then scaled to 0 to 100. */

import type { PodInfo } from '../../../api/podspec/scheduling/pod-info.ts';
import type { ClusterView } from '../cluster.ts';
import type { NodeInfo } from '../node-info.ts';
import type { PluginArgs } from '../plugin-args.ts';

export const MAX_SCORE = 100;

/**
 * Returns scores (0 to 100) in the order of `nodes`, the feasible nodes. Undefined if the plug-in has no preference for
 * this pod.
 */
export type Scorer = (pod: PodInfo, nodes: readonly NodeInfo[], view: ClusterView) => number[] | undefined;

export type ScorerFactory = (args: PluginArgs) => Scorer;

/**
 * Scales the scores so that the largest becomes 100. With `reverse`, the largest becomes 0 and a score of 0 becomes
 * 100.
 */
export function normalize(scores: readonly number[], { reverse }: { readonly reverse: boolean }): number[] {
  const max = scores.reduce((most, score) => Math.max(most, score), 0);
  if (max === 0) return scores.map(() => (reverse ? MAX_SCORE : 0));
  return scores.map((score) => {
    const scaled = Math.floor((MAX_SCORE * score) / max);
    return reverse ? MAX_SCORE - scaled : scaled;
  });
}
