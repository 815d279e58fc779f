/** Required pod affinity and anti-affinity. Source: upstream's interpodaffinity plug-in and its documentation. */
import { termSelects } from '../../../api/podspec/scheduling/pod-info.ts';
import { selectionOfTerms } from '../pod-selection.ts';
import { type Filter, reject, rejectUnresolvable } from './filter.ts';

export const interPodAffinity: Filter = (pod, view) => {
  const { counts, namespaceLabels } = view;
  const refusing = [...counts.groups()].filter(
    ({ kind, term }) => kind === 'anti' && termSelects(term, pod, namespaceLabels),
  );
  if (refusing.length === 0 && pod.affinity.length === 0 && pod.antiAffinity.length === 0) return undefined;
  // A placed pod counts for an affinity term only if it satisfies all affinity terms of this pod.
  const kin = pod.affinity.length === 0 ? undefined : counts.selected(selectionOfTerms(pod.affinity, namespaceLabels));
  const unwanted = pod.antiAffinity.map(({ topologyKey }, index) => ({
    topologyKey,
    pods: counts.selected(selectionOfTerms(pod.antiAffinity.slice(index, index + 1), namespaceLabels)),
  }));
  // If no placed pod satisfies the affinity and the pod satisfies it itself, the pod starts a group and may run on any
  // node.
  const startsGroup =
    kin !== undefined &&
    pod.affinity.every((term) => kin.withKey(term.topologyKey) === 0 && termSelects(term, pod, namespaceLabels));
  return (node) => {
    for (const { topologyKey } of pod.affinity) {
      const domain = node.label(topologyKey);
      if (domain === undefined || ((kin?.inDomain(topologyKey, domain) ?? 0) === 0 && !startsGroup)) {
        return rejectUnresolvable('InterPodAffinity', "node(s) didn't match pod affinity rules");
      }
    }
    for (const { topologyKey, pods } of unwanted) {
      const domain = node.label(topologyKey);
      if (domain !== undefined && pods.inDomain(topologyKey, domain) > 0) {
        return reject('InterPodAffinity', "node(s) didn't match pod anti-affinity rules");
      }
    }
    for (const { term, inDomain } of refusing) {
      const domain = node.label(term.topologyKey);
      if (domain !== undefined && inDomain(domain) > 0) {
        return reject('InterPodAffinity', "node(s) didn't satisfy existing pods anti-affinity rules");
      }
    }
    return undefined;
  };
};
