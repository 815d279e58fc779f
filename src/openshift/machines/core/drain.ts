/** Selects the pods to evict from a node. Source: k8s.io/kubectl/pkg/drain with --ignore-daemonsets --force. */

import type { Node, Pod } from '../../../api/generated/core/v1.ts';
import { timeMs } from '../../../base/time/timestamps.ts';

/**
 * Time after which a deleted pod on an unreachable node is skipped, because no kubelet can complete its termination.
 */
const UNREACHABLE_GRACE_MS = 60_000;

/** Pods that must still be evicted, or that have been evicted but not terminated. */
export function podsToDrain(pods: readonly Pod[], nodeReady: boolean, nowMs: number): Pod[] {
  return pods.filter(({ metadata, status }) => {
    if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return false;
    if (metadata?.annotations?.['kubernetes.io/config.mirror'] !== undefined) return false;
    if ((metadata?.ownerReferences ?? []).some(({ kind, controller }) => controller === true && kind === 'DaemonSet'))
      return false;
    const { deletionTimestamp } = metadata ?? {};
    if (deletionTimestamp === undefined || nodeReady) return true;
    return nowMs - timeMs(deletionTimestamp) < UNREACHABLE_GRACE_MS;
  });
}

export const isReady = (node: Node | undefined): boolean =>
  node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
