/** What in a change of a pod or node matters to scheduling. Heartbeats and status updates must not wake anybody. */
import type { Node, Pod } from 'kubernetes-types/core/v1';
import type { ClusterEvent } from '../../core/scheduling/hints.ts';

type NodeEvent = Exclude<Extract<ClusterEvent, { readonly node: Node }>['kind'], 'NodeAdded'>;

export function nodeEvents(node: Node, old: Node): NodeEvent[] {
  const events: NodeEvent[] = [];
  if (differs(node.status?.allocatable, old.status?.allocatable)) events.push('NodeAllocatableChanged');
  if (differs(node.metadata?.labels, old.metadata?.labels)) events.push('NodeLabelsChanged');
  if (
    differs(node.spec?.taints, old.spec?.taints) ||
    (node.spec?.unschedulable ?? false) !== (old.spec?.unschedulable ?? false)
  ) {
    events.push('NodeTaintsChanged');
  }
  return events;
}

/** The node's picture in the scheduler is out of date. */
export function isNodeRelevant(node: Node, old: Node): boolean {
  return nodeEvents(node, old).length > 0 || differs(node.status?.images, old.status?.images);
}

export function isTerminal(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

export function isPlaced(pod: Pod): boolean {
  return (pod.spec?.nodeName ?? '') !== '';
}

/** A change of a waiting pod that may make it schedulable. Its status is written by us and does not count. */
export function isPodRelevant(pod: Pod, old: Pod): boolean {
  return (
    differs(pod.spec, old.spec) ||
    differs(pod.metadata?.labels, old.metadata?.labels) ||
    differs(claimStatuses(pod), claimStatuses(old)) ||
    (pod.metadata?.deletionTimestamp === undefined) !== (old.metadata?.deletionTimestamp === undefined)
  );
}

/** Claims that were made of the pod's templates; kubernetes-types stops before the field. */
const claimStatuses = ({ status }: Pod): unknown =>
  (status as { readonly resourceClaimStatuses?: unknown } | undefined)?.resourceClaimStatuses;

export function differs(a: unknown, b: unknown): boolean {
  return a !== b && JSON.stringify(a) !== JSON.stringify(b);
}

export function hasGates(pod: Pod): boolean {
  return (pod.spec?.schedulingGates?.length ?? 0) > 0;
}
