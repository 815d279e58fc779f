/** Node selectors of pods. Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity. */
import type { Node, Pod } from 'kubernetes-types/core/v1';
import { matchesTerm } from '../../api/podspec/node-terms.ts';

/** The pod's nodeSelector and required node affinity hold for the node. */
export function matchesNode(pod: Pod, node: Node): boolean {
  const labels = node.metadata?.labels ?? {};
  for (const [key, value] of Object.entries(pod.spec?.nodeSelector ?? {})) {
    if (!Object.hasOwn(labels, key) || labels[key] !== value) return false;
  }
  const required = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || required.nodeSelectorTerms.some((term) => matchesTerm(term, node));
}
