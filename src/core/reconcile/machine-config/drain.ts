/**
 * What the drain controller does for a node, and which of its pods have to go. The host asks by an annotation and waits
 * for the answer. Source: pkg/controller/drain of openshift/machine-config-operator 4.12; filters of `kubectl drain`
 * with --force, --ignore-daemonsets and --delete-emptydir-data.
 */
import type { Node, Pod } from 'kubernetes-types/core/v1';
import { DESIRED_DRAIN, LAST_APPLIED_DRAIN } from '../../../api/machineconfig/types.ts';
import { controllerOf } from '../ownership.ts';
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

/** Pods that a drain evicts: neither static ones, nor those of DaemonSets, nor those that have ended. */
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
/** A drain that has lasted longer is reported, and goes on. */
export const DRAIN_TIMEOUT_MS = 60 * MINUTE_MS;
/** One attempt waits so long for evicted pods to end. */
export const ATTEMPT_MS = 90_000;

/** How long to wait after an attempt that failed, by how long the drain has lasted. */
export const retryDelayMs = (lastedMs: number): number => (lastedMs > SLOW_AFTER_MS ? 5 * MINUTE_MS : MINUTE_MS);
