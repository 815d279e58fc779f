/**
 * Pods that were to be disrupted and were not: after a while they do not say so any more. Source:
 * pkg/controller/disruption.
 */
import type { Pod } from 'kubernetes-types/core/v1';
import { timeMs } from '../context.ts';
import { isPodTerminal, podCondition } from '../pods.ts';

const STALE_AFTER_MS = 2 * 60_000;

/**
 * Milliseconds until the pod's condition `DisruptionTarget` is stale, 0: it is; undefined: it has none that could
 * become so.
 */
export function targetStaleInMs(pod: Pod, nowMs: number): number | undefined {
  if (pod.metadata?.deletionTimestamp !== undefined || isPodTerminal(pod)) return undefined;
  const target = podCondition(pod, 'DisruptionTarget');
  // A kubelet that ends a pod may take its time, without the pod being deleted.
  if (target?.status !== 'True' || target.reason === 'TerminationByKubelet') return undefined;
  return Math.max(0, timeMs(target.lastTransitionTime) + STALE_AFTER_MS - nowMs);
}
