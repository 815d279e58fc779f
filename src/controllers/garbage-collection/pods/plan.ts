/**
 * Deletes pods that no other component cleans up: finished pods above the threshold, pods of deleted nodes, pods
 * deleted before they had a node, and pods stuck on nodes that are out of service. Source: upstream's podgc, KEP-2268.
 */

import type { Node, Pod } from '../../../api/generated/core/v1.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import { isPodTerminal } from '../../framework/core/pods.ts';

export interface PodGcSnapshot {
  readonly pods: readonly Pod[];
  readonly nodes: ReadonlyMap<string, Node>;
  /** Names of nodes that have been missing for long enough and whose absence the API server has confirmed. */
  readonly missingNodes: ReadonlySet<string>;
  /** Maximum number of finished pods; all are kept if it is 0 or less. */
  readonly terminatedThreshold: number;
}

export interface PodRemoval {
  readonly pod: Pod;
  readonly reason: 'Terminated' | 'Orphaned' | 'Unscheduled' | 'OutOfService';
  /** Whether the phase is set to Failed before the deletion, so that owners and watchers receive the outcome. */
  readonly markFailed: boolean;
}

const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

export function planPodGc(snapshot: PodGcSnapshot): PodRemoval[] {
  const removals = new Map<Pod, PodRemoval>();
  const remove = (pod: Pod, reason: PodRemoval['reason']): void => {
    if (!removals.has(pod))
      removals.set(pod, { pod, reason, markFailed: reason !== 'Terminated' && !isPodTerminal(pod) });
  };
  for (const pod of surplusTerminated(snapshot)) remove(pod, 'Terminated');
  for (const pod of snapshot.pods) {
    const nodeName = pod.spec?.nodeName ?? '';
    const isDeleting = pod.metadata?.deletionTimestamp !== undefined;
    if (nodeName === '') {
      if (isDeleting) remove(pod, 'Unscheduled');
      continue;
    }
    if (snapshot.missingNodes.has(nodeName)) remove(pod, 'Orphaned');
    const node = snapshot.nodes.get(nodeName);
    if (isDeleting && node !== undefined && isOutOfService(node)) remove(pod, 'OutOfService');
  }
  return [...removals.values()];
}

/** Finished pods above the threshold: evicted ones first, then the oldest. */
function surplusTerminated(snapshot: PodGcSnapshot): Pod[] {
  if (snapshot.terminatedThreshold <= 0) return [];
  const terminated = snapshot.pods.filter(isPodTerminal);
  const surplus = terminated.length - snapshot.terminatedThreshold;
  if (surplus <= 0) return [];
  const isEvicted = (pod: Pod): boolean => pod.status?.phase === 'Failed' && pod.status.reason === 'Evicted';
  return terminated
    .sort(
      (a, b) =>
        Number(isEvicted(b)) - Number(isEvicted(a)) ||
        timeMs(a.metadata?.creationTimestamp) - timeMs(b.metadata?.creationTimestamp),
    )
    .slice(0, surplus);
}

function isOutOfService(node: Node): boolean {
  const isReady = node.status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') === true;
  return !isReady && node.spec?.taints?.some((taint) => taint.key === OUT_OF_SERVICE) === true;
}

/** Names of nodes that pods reference, but that do not exist. */
export function unknownNodes(pods: readonly Pod[], nodes: ReadonlyMap<string, Node>): Set<string> {
  const unknown = new Set<string>();
  for (const pod of pods) {
    const name = pod.spec?.nodeName ?? '';
    if (name !== '' && !nodes.has(name)) unknown.add(name);
  }
  return unknown;
}
