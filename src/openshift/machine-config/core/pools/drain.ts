/**
 * Plans drains: the action for a node, and the pods to evict. A host requests a drain in an annotation and waits for
 * the annotation with the result. Source: pkg/controller/drain of openshift/machine-config-operator 4.12; filters of
 * `kubectl drain` with --force, --ignore-daemonsets and --delete-emptydir-data.
 */
import type { Node, Pod } from '../../../../api/generated/core/v1.ts';
import { controllerOf } from '../../../../controllers/framework/core/ownership.ts';
import { DESIRED_DRAIN, LAST_APPLIED_DRAIN } from '../../kinds/machine-config-types.ts';
import { annotationOf } from './node-state.ts';

const MIRROR = 'kubernetes.io/config.mirror';

export type DrainStep =
  | { readonly kind: 'none' }
  | { readonly kind: 'drain' | 'uncordon'; readonly wanted: string }
  | { readonly kind: 'unknown'; readonly wanted: string };

export function drainStep(node: Node): DrainStep {
  const wanted = annotationOf(node, DESIRED_DRAIN);
  if (wanted === '' || wanted === annotationOf(node, LAST_APPLIED_DRAIN)) return { kind: 'none' };
  const verb = wanted.split('-')[0];
  if (verb === 'drain' || verb === 'uncordon') return { kind: verb, wanted };
  return { kind: 'unknown', wanted };
}

/** Pods that a drain evicts: all except static pods, DaemonSet pods and pods that have finished. */
export function podsToEvict(nodeName: string, pods: readonly Pod[]): Pod[] {
  return pods.filter(
    (pod) =>
      pod.spec?.nodeName === nodeName &&
      pod.metadata?.annotations?.[MIRROR] === undefined &&
      controllerOf(pod)?.kind !== 'DaemonSet' &&
      pod.status?.phase !== 'Succeeded' &&
      pod.status?.phase !== 'Failed',
  );
}

const MINUTE_MS = 60_000;
const SLOW_AFTER_MS = 10 * MINUTE_MS;
/** Duration after which a drain is reported as too slow. The drain continues. */
export const DRAIN_TIMEOUT_MS = 60 * MINUTE_MS;
/** Duration of one attempt, in which evicted pods must terminate. */
export const ATTEMPT_MS = 90_000;

/** Delay after a failed attempt. `lastedMs` is the time since the drain began. */
export const retryDelayMs = (lastedMs: number): number => (lastedMs > SLOW_AFTER_MS ? 5 * MINUTE_MS : MINUTE_MS);
