/** Scorer that spreads pods over topology domains. Source: upstream's podtopologyspread plug-in. */

import type { PodInfo } from '../../../api/podspec/scheduling/pod-info.ts';
import type { ClusterView } from '../cluster.ts';
import type { NodeInfo } from '../node-info.ts';
import { constraintsOf, countsAllNodes, isEligible, type SpreadConstraint } from '../topology.ts';
import { MAX_SCORE, type ScorerFactory } from './score.ts';

const HOSTNAME = 'kubernetes.io/hostname';

export const spreadPreference: ScorerFactory = (args) => (pod, nodes, view) => {
  const { constraints, areSystemDefaults } = constraintsOf(pod, 'ScheduleAnyway', args, view);
  if (constraints.length === 0) return undefined;
  const takesPart = (node: NodeInfo): boolean =>
    areSystemDefaults || constraints.every((constraint) => node.label(constraint.topologyKey) !== undefined);
  const participates = nodes.map(takesPart);
  const raw = nodes.map(() => 0);
  const isAlone = areSystemDefaults || constraints.length === 1;
  for (const constraint of constraints) {
    const { size, countOf } = countDomains(constraint, pod, nodes, view, takesPart, isAlone);
    if (size === 0) continue;
    const weight = Math.log(size + 2);
    for (let index = 0; index < nodes.length; index++) {
      const node = nodes[index];
      const domain = node?.label(constraint.topologyKey);
      if (node === undefined || domain === undefined || participates[index] !== true) continue;
      raw[index] = (raw[index] ?? 0) + countOf(node, domain) * weight + (constraint.maxSkew - 1);
    }
  }
  let max = 0;
  let min = Number.POSITIVE_INFINITY;
  for (let index = 0; index < raw.length; index++) {
    const score = Math.round(raw[index] ?? 0);
    raw[index] = score;
    if (participates[index] !== true) continue;
    if (score > max) max = score;
    if (score < min) min = score;
  }
  return raw.map((score, index) => {
    if (participates[index] !== true) return 0;
    return max === 0 ? MAX_SCORE : Math.floor((MAX_SCORE * (max + min - score)) / max);
  });
};

interface Domains {
  readonly size: number;
  countOf(node: NodeInfo, domain: string): number;
}

/** Domains of the feasible nodes with the number of selected pods in each domain. */
function countDomains(
  constraint: SpreadConstraint,
  pod: PodInfo,
  feasible: readonly NodeInfo[],
  view: ClusterView,
  takesPart: (node: NodeInfo) => boolean,
  isAlone: boolean,
): Domains {
  const selected = view.counts.selected(constraint.selection);
  // With the hostname as key, each node is a domain, so only the pods of the node itself are counted.
  if (constraint.topologyKey === HOSTNAME) {
    return { size: feasible.length, countOf: (node) => selected.on(node) };
  }
  const domains = new Map<string, number>();
  const { topologyKey } = constraint;
  if (isAlone && countsAllNodes(constraint, pod)) {
    for (const node of feasible) {
      const domain = node.label(topologyKey);
      if (domain !== undefined && !domains.has(domain)) domains.set(domain, selected.inDomain(topologyKey, domain));
    }
    return { size: domains.size, countOf: (_, domain) => domains.get(domain) ?? 0 };
  }
  for (const node of feasible) {
    const domain = node.label(constraint.topologyKey);
    if (domain !== undefined && takesPart(node)) domains.set(domain, 0);
  }
  if (domains.size > 0) {
    for (const node of view.nodes) {
      const here = selected.on(node);
      if (here === 0) continue;
      const domain = node.label(constraint.topologyKey);
      const count = domain === undefined ? undefined : domains.get(domain);
      if (domain === undefined || count === undefined || !takesPart(node) || !isEligible(constraint, pod.pod, node)) {
        continue;
      }
      domains.set(domain, count + here);
    }
  }
  return { size: domains.size, countOf: (_, domain) => domains.get(domain) ?? 0 };
}
