/** Node selectors of pods. Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity. */
import type { Node, Pod } from '../../generated/core/v1.ts';
import { matchesTerm } from '../node-terms.ts';

/** Whether the node satisfies the pod's nodeSelector and required node affinity. */
export function matchesNode(pod: Pod, node: Node): boolean {
  const { nodeSelector } = pod.spec ?? {};
  if (nodeSelector !== undefined && !hasLabels(node.metadata?.labels ?? {}, nodeSelector)) return false;
  const required = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || required.nodeSelectorTerms.some((term) => matchesTerm(term, node));
}

/** Called for every pair of pod and node, so it allocates no memory. */
function hasLabels(labels: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>): boolean {
  for (const key in wanted) {
    if (Object.hasOwn(wanted, key) && (!Object.hasOwn(labels, key) || labels[key] !== wanted[key])) return false;
  }
  return true;
}
