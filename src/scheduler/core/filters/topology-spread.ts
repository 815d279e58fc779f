/** Filter for topology spread constraints with `DoNotSchedule`. */

import type { PodInfo } from '../../../api/podspec/scheduling/pod-info.ts';
import type { ClusterView } from '../cluster.ts';
import type { NodeInfo } from '../node-info.ts';
import { constraintsOf, countsAllNodes, isEligible, type SpreadConstraint } from '../topology.ts';
import { type FilterFactory, reject, rejectUnresolvable } from './filter.ts';

const MISMATCH = "node(s) didn't match pod topology spread constraints";

export const topologySpread: FilterFactory = (args) => (pod, view) => {
  const constraints = constraintsOf(pod, 'DoNotSchedule', args, view).constraints;
  if (constraints.length === 0) return undefined;
  const hasAllKeys = (node: NodeInfo): boolean =>
    constraints.every((constraint) => node.label(constraint.topologyKey) !== undefined);
  const judged = constraints.map((constraint) => ({
    constraint,
    counts:
      constraints.length === 1 && countsAllNodes(constraint, pod)
        ? domainCounts(constraint, view)
        : countDomains(constraint, pod, view, hasAllKeys),
  }));
  const minimums = judged.map(({ constraint, counts }) => minimum(constraint, counts));
  return (node) => {
    for (const [index, { constraint, counts }] of judged.entries()) {
      const domain = node.label(constraint.topologyKey);
      if (domain === undefined) return rejectUnresolvable('PodTopologySpread', `${MISMATCH} (missing required label)`);
      const skew = (counts.get(domain) ?? 0) + Number(constraint.selectsSelf) - (minimums[index] ?? 0);
      if (skew > constraint.maxSkew) return reject('PodTopologySpread', MISMATCH);
    }
    return undefined;
  };
};

function domainCounts({ topologyKey, selection }: SpreadConstraint, view: ClusterView): Map<string, number> {
  const selected = view.counts.selected(selection);
  const values = [...view.domains(topologyKey)];
  return new Map(values.map((value) => [value, selected.inDomain(topologyKey, value)]));
}

function countDomains(
  constraint: SpreadConstraint,
  pod: PodInfo,
  view: ClusterView,
  hasAllKeys: (node: NodeInfo) => boolean,
): Map<string, number> {
  const counts = new Map<string, number>();
  const selected = view.counts.selected(constraint.selection);
  for (const node of view.nodes) {
    const domain = node.label(constraint.topologyKey);
    if (domain === undefined || !hasAllKeys(node) || !isEligible(constraint, pod.pod, node)) continue;
    counts.set(domain, (counts.get(domain) ?? 0) + selected.on(node));
  }
  return counts;
}

/**
 * Smallest count of all domains. If there are fewer domains than minDomains, it is 0, as if an empty domain existed.
 */
function minimum(constraint: SpreadConstraint, counts: ReadonlyMap<string, number>): number {
  if (counts.size < constraint.minDomains) return 0;
  let least = Number.POSITIVE_INFINITY;
  for (const count of counts.values()) least = Math.min(least, count);
  return least === Number.POSITIVE_INFINITY ? 0 : least;
}
