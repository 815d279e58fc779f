/**
 * Required pod affinity and anti-affinity. Source: KEP-less; upstream's interpodaffinity plug-in and its documentation.
 */
import type { ClusterView } from '../cluster.ts';
import type { NodeInfo } from '../node-info.ts';
import { type AffinityTerm, type PodInfo, termSelects } from '../pod-info.ts';
import { type Filter, reject } from './filter.ts';

/** How many selected pods there are in each domain, by term. */
type DomainCounts = ReadonlyMap<string, number>;

export const interPodAffinity: Filter = (pod, view) => {
  const forbidden = domainsThatRefuse(pod, view);
  const wanted = pod.affinity.map((term) => ({ term, counts: countAffinity(pod, term, view) }));
  const unwanted = pod.antiAffinity.map((term) => ({ term, counts: countMatches(term, view) }));
  if (forbidden.size === 0 && wanted.length === 0 && unwanted.length === 0) return undefined;
  // The first pod of a group with affinity to itself matches no existing pod: it may be placed anywhere.
  const startsGroup =
    wanted.every(({ counts }) => counts.size === 0) &&
    pod.affinity.every((term) => termSelects(term, pod, view.namespaceLabels));
  return (node) => {
    for (const { term, counts } of wanted) {
      const domain = node.label(term.topologyKey);
      if (domain === undefined || (!counts.has(domain) && !startsGroup)) {
        return reject('InterPodAffinity', "node(s) didn't match pod affinity rules", true);
      }
    }
    for (const { term, counts } of unwanted) {
      const domain = node.label(term.topologyKey);
      if (domain !== undefined && counts.has(domain)) {
        return reject('InterPodAffinity', "node(s) didn't match pod anti-affinity rules", false);
      }
    }
    for (const [key, domains] of forbidden) {
      const domain = node.label(key);
      if (domain !== undefined && domains.has(domain)) {
        return reject('InterPodAffinity', "node(s) didn't satisfy existing pods anti-affinity rules", false);
      }
    }
    return undefined;
  };
};

/** An existing pod counts for an affinity term only when it satisfies all of the pod's affinity terms. */
function countAffinity(pod: PodInfo, term: AffinityTerm, view: ClusterView): DomainCounts {
  return countDomains(view.nodes, term.topologyKey, (other) =>
    pod.affinity.every((each) => termSelects(each, other, view.namespaceLabels)),
  );
}

function countMatches(term: AffinityTerm, view: ClusterView): DomainCounts {
  return countDomains(view.nodes, term.topologyKey, (other) => termSelects(term, other, view.namespaceLabels));
}

function countDomains(
  nodes: readonly NodeInfo[],
  topologyKey: string,
  counts: (other: PodInfo) => boolean,
): DomainCounts {
  const domains = new Map<string, number>();
  for (const node of nodes) {
    const domain = node.label(topologyKey);
    if (domain === undefined) continue;
    for (const other of node.pods.values()) {
      if (counts(other)) domains.set(domain, (domains.get(domain) ?? 0) + 1);
    }
  }
  return domains;
}

/** Domains where pods live that refuse this one, by topology key. */
function domainsThatRefuse(pod: PodInfo, view: ClusterView): Map<string, Set<string>> {
  const refused = new Map<string, Set<string>>();
  for (const node of view.nodes) {
    for (const other of node.pods.values()) {
      for (const term of other.antiAffinity) {
        if (!termSelects(term, pod, view.namespaceLabels)) continue;
        const domain = node.label(term.topologyKey);
        if (domain === undefined) continue;
        const domains = refused.get(term.topologyKey);
        if (domains === undefined) refused.set(term.topologyKey, new Set([domain]));
        else domains.add(domain);
      }
    }
  }
  return refused;
}
