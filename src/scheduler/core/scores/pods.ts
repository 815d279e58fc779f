/** Scorer for preferred pod affinity and anti-affinity. Source: upstream's interpodaffinity plug-in. */

import { type PodInfo, termSelects, type WeightedTerm } from '../../../api/podspec/scheduling/pod-info.ts';
import type { ClusterView } from '../cluster.ts';
import { selectionOfTerms } from '../pod-selection.ts';
import { MAX_SCORE, type ScorerFactory } from './score.ts';

interface Credit {
  readonly topologyKey: string;
  readonly weight: number;
  /** Number of matching pods in the domain with this value. */
  inDomain(value: string): number;
}

export const podAffinityPreference: ScorerFactory =
  ({ hardPodAffinityWeight, ignorePreferredTermsOfExistingPods }) =>
  (pod, nodes, view) => {
    const credits = [
      ...ownCredits(pod.preferredAffinity, 1, view),
      ...ownCredits(pod.preferredAntiAffinity, -1, view),
      ...creditsOfExisting(pod, view, hardPodAffinityWeight, ignorePreferredTermsOfExistingPods),
    ];
    if (credits.length === 0) return undefined;
    const scores = nodes.map((node) => {
      let score = 0;
      for (const { topologyKey, weight, inDomain } of credits) {
        const domain = node.label(topologyKey);
        if (domain !== undefined) score += weight * inDomain(domain);
      }
      return score;
    });
    const max = scores.reduce((most, score) => Math.max(most, score), Number.NEGATIVE_INFINITY);
    const min = scores.reduce((least, score) => Math.min(least, score), Number.POSITIVE_INFINITY);
    return scores.map((score) => (max === min ? 0 : Math.floor((MAX_SCORE * (score - min)) / (max - min))));
  };

function ownCredits(terms: readonly WeightedTerm[], sign: 1 | -1, view: ClusterView): Credit[] {
  return terms.map(({ term, weight }) => {
    const pods = view.counts.selected(selectionOfTerms([term], view.namespaceLabels));
    const { topologyKey } = term;
    return { topologyKey, weight: sign * weight, inDomain: (value) => pods.inDomain(topologyKey, value) };
  });
}

/** Affinity terms of placed pods that select this pod. */
function creditsOfExisting(pod: PodInfo, view: ClusterView, hardWeight: number, ignoresPreferred: boolean): Credit[] {
  // If the profile ignores preferred terms of existing pods, they are ignored for a pod without preferred terms.
  const ignoresAll = ignoresPreferred && pod.preferredAffinity.length + pod.preferredAntiAffinity.length === 0;
  if (ignoresAll) return [];
  const credits: Credit[] = [];
  for (const { kind, weight, term, inDomain } of view.counts.groups()) {
    const credit = kind === 'affinity' ? hardWeight : weight;
    if (kind === 'anti' || credit === 0 || !termSelects(term, pod, view.namespaceLabels)) continue;
    credits.push({ topologyKey: term.topologyKey, weight: credit, inDomain });
  }
  return credits;
}
