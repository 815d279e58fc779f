/** Pods that a node's NoExecute taints evict, and when. Source: upstream's tainteviction controller. */
import type { Node, Pod, Taint, Toleration } from '../../../api/generated/core/v1.ts';
import { isPodTerminal } from '../../framework/core/pods.ts';

export type Eviction = { readonly kind: 'stay' } | { readonly kind: 'leave'; readonly inMs: number };

export interface EvictionRules {
  /** Whether a toleration tolerates a taint, by the scheduler's rule. */
  tolerates(toleration: Toleration, taint: Taint): boolean;
  /** Time since the taint was added, on a monotonic clock. */
  heldForMs(taint: Taint): number;
}

export function planEviction(pod: Pod, node: Node, rules: EvictionRules): Eviction {
  if (isPodTerminal(pod) || pod.metadata?.deletionTimestamp !== undefined) return { kind: 'stay' };
  let inMs: number | undefined;
  for (const taint of noExecuteTaints(node)) {
    const matching = (pod.spec?.tolerations ?? []).filter((toleration) => rules.tolerates(toleration, taint));
    if (matching.length === 0) return { kind: 'leave', inMs: 0 };
    const limits = matching
      .map((toleration) => toleration.tolerationSeconds)
      .filter((seconds) => seconds !== undefined)
      .map(Number);
    if (limits.length < matching.length) continue;
    const graceMs = Math.max(0, Math.min(...limits)) * 1000;
    const left = Math.max(0, graceMs - rules.heldForMs(taint));
    inMs = Math.min(inMs ?? Number.POSITIVE_INFINITY, left);
  }
  return inMs === undefined ? { kind: 'stay' } : { kind: 'leave', inMs };
}

export function noExecuteTaints(node: Node): Taint[] {
  return (node.spec?.taints ?? []).filter((taint) => taint.effect === 'NoExecute');
}
