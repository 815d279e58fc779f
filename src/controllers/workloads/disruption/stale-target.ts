/**
 * Stale `DisruptionTarget` conditions: a pod that was to be disrupted but still runs loses the condition after a while.
 * Source: pkg/controller/disruption.
 */

import type { Pod } from '../../../api/generated/core/v1.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import { isPodTerminal, podCondition } from '../../framework/core/pods.ts';

const STALE_AFTER_MS = 2 * 60_000;

/**
 * Milliseconds until the pod's condition `DisruptionTarget` becomes stale; 0 if it is stale. Undefined if the pod has
 * no condition that can become stale.
 */
export function targetStaleInMs(pod: Pod, nowMs: number): number | undefined {
  if (pod.metadata?.deletionTimestamp !== undefined || isPodTerminal(pod)) return undefined;
  const target = podCondition(pod, 'DisruptionTarget');
  // A condition of the kubelet is never stale: the kubelet terminates the pod without deleting it, and may need more
  // time.
  if (target?.status !== 'True' || target.reason === 'TerminationByKubelet') return undefined;
  return Math.max(0, timeMs(target.lastTransitionTime) + STALE_AFTER_MS - nowMs);
}
