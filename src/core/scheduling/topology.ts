/** Topology spread constraints, read once for filter and score. Source: KEP-895, KEP-3022, KEP-3094, KEP-3243. */
import type { Pod, TopologySpreadConstraint } from 'kubernetes-types/core/v1';
import { type LabelSelector, matchesLabels } from '../../base/selector.ts';
import { matchesNode } from './node-affinity.ts';
import type { NodeInfo } from './node-info.ts';
import { type PodInfo, safeSelector, withLabelKeys } from './pod-info.ts';
import { untoleratedTaint } from './tolerations.ts';

export interface SpreadConstraint {
  readonly topologyKey: string;
  readonly maxSkew: number;
  readonly minDomains: number;
  readonly selects: (other: PodInfo) => boolean;
  readonly selectsSelf: boolean;
  readonly honorsAffinity: boolean;
  readonly honorsTaints: boolean;
}

export function spreadConstraints(pod: PodInfo, whenUnsatisfiable: string): SpreadConstraint[] {
  return (pod.pod.spec?.topologySpreadConstraints ?? [])
    .filter((constraint) => constraint.whenUnsatisfiable === whenUnsatisfiable)
    .map((constraint) => readConstraint(constraint, pod));
}

function readConstraint(constraint: TopologySpreadConstraint, pod: PodInfo): SpreadConstraint {
  const selector: LabelSelector = withLabelKeys(
    safeSelector(constraint.labelSelector),
    pod.pod,
    constraint.matchLabelKeys,
  );
  return {
    topologyKey: constraint.topologyKey,
    maxSkew: constraint.maxSkew,
    minDomains: constraint.minDomains ?? 1,
    selects: (other) =>
      other.namespace === pod.namespace &&
      other.pod.metadata?.deletionTimestamp === undefined &&
      matchesLabels(selector, other.pod.metadata?.labels),
    selectsSelf: matchesLabels(selector, pod.pod.metadata?.labels),
    honorsAffinity: (constraint.nodeAffinityPolicy ?? 'Honor') === 'Honor',
    honorsTaints: constraint.nodeTaintsPolicy === 'Honor',
  };
}

/** True when a node takes part in the counting for this constraint. */
export function isEligible(constraint: SpreadConstraint, pod: Pod, node: NodeInfo): boolean {
  if (constraint.honorsAffinity && !matchesNode(pod, node.node)) return false;
  return (
    !constraint.honorsTaints ||
    untoleratedTaint(node.node.spec?.taints, pod.spec?.tolerations, ['NoSchedule', 'NoExecute']) === undefined
  );
}

export function countSelected(constraint: SpreadConstraint, node: NodeInfo): number {
  let count = 0;
  for (const other of node.pods.values()) if (constraint.selects(other)) count++;
  return count;
}
