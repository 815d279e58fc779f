/**
 * Determines which changes of a pod or node are relevant to scheduling. Heartbeats and status updates must not requeue
 * pods.
 */
import type { Node, Pod } from '../api/generated/core/v1.ts';
import type { ClusterEvent } from './core/hints.ts';

export function nodeEvents(node: Node, old: Node): ClusterEvent[] {
  const events: ClusterEvent[] = [];
  if (differs(node.status?.allocatable, old.status?.allocatable)) events.push({ kind: 'NodeAllocatableChanged', node });
  if (differs(node.metadata?.labels, old.metadata?.labels)) events.push({ kind: 'NodeLabelsChanged', node, old });
  if (
    differs(node.spec?.taints, old.spec?.taints) ||
    (node.spec?.unschedulable ?? false) !== (old.spec?.unschedulable ?? false)
  ) {
    events.push({ kind: 'NodeTaintsChanged', node });
  }
  return events;
}

/** Whether the scheduler's copy of the node must be updated. */
export function isNodeRelevant(node: Node, old: Node): boolean {
  return nodeEvents(node, old).length > 0 || differs(node.status?.images, old.status?.images);
}

export function isTerminal(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

export function isPlaced(pod: Pod): boolean {
  return (pod.spec?.nodeName ?? '') !== '';
}

/**
 * Whether a change of a pending pod may make it schedulable. Its status is mostly ignored, because the scheduler writes
 * it.
 */
export function isPodRelevant(pod: Pod, old: Pod): boolean {
  return (
    differs(pod.spec, old.spec) ||
    differs(pod.metadata?.labels, old.metadata?.labels) ||
    differs(claimStatuses(pod), claimStatuses(old)) ||
    (pod.metadata?.deletionTimestamp === undefined) !== (old.metadata?.deletionTimestamp === undefined)
  );
}

/** Names of the claims that were created from the templates of the pod. */
const claimStatuses = ({ status }: Pod): unknown => status?.resourceClaimStatuses;

export function differs(a: unknown, b: unknown): boolean {
  return a !== b && JSON.stringify(a) !== JSON.stringify(b);
}

export function hasGates(pod: Pod): boolean {
  return (pod.spec?.schedulingGates?.length ?? 0) > 0;
}
