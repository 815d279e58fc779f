/** State of pods as controllers evaluate it, and the order in which surplus pods are deleted. */

import type { Pod, PodCondition } from '../../../api/generated/core/v1.ts';
import { timeMs } from '../../../base/time/timestamps.ts';

export function podCondition(pod: Pod, type: string): PodCondition | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === type);
}

export function isPodReady(pod: Pod): boolean {
  return podCondition(pod, 'Ready')?.status === 'True';
}

/** Whether the pod is neither finished nor being deleted. */
export function isPodActive(pod: Pod): boolean {
  return !isPodTerminal(pod) && pod.metadata?.deletionTimestamp === undefined;
}

export function isPodTerminal(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

/** Whether the pod has been ready for at least `minReadySeconds`. */
export function isPodAvailable(pod: Pod, minReadySeconds: number, nowMs: number): boolean {
  return availableInMs(pod, minReadySeconds, nowMs) === 0;
}

/** Milliseconds until a ready pod counts as available; 0 if it already does, undefined if the pod is not ready. */
export function availableInMs(pod: Pod, minReadySeconds: number, nowMs: number): number | undefined {
  const ready = podCondition(pod, 'Ready');
  if (ready?.status !== 'True') return undefined;
  if (minReadySeconds <= 0) return 0;
  const since = timeMs(ready.lastTransitionTime, Number.NaN);
  if (Number.isNaN(since)) return undefined;
  return Math.max(0, since + minReadySeconds * 1000 - nowMs);
}

const PHASE_RANK: Readonly<Record<string, number>> = { Pending: 0, Unknown: 1, Running: 2 };
const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';

interface Ranked {
  readonly pod: Pod;
  /** Number of related pods on the same node; pods on crowded nodes are deleted first. */
  readonly crowd: number;
}

/**
 * Selects `count` of `pods` to delete, in this order: unassigned, pending, not ready, low deletion cost, crowded node,
 * recently ready (by order of magnitude), many restarts, young. Source: upstream's ActivePodsWithRanks.
 */
export function podsToDelete(pods: readonly Pod[], related: readonly Pod[], count: number, nowMs: number): Pod[] {
  if (count >= pods.length) return [...pods];
  const onNode = new Map<string, number>();
  for (const pod of related) {
    const node = pod.spec?.nodeName;
    if (isPodActive(pod) && node !== undefined) onNode.set(node, (onNode.get(node) ?? 0) + 1);
  }
  return pods
    .map((pod): Ranked => ({ pod, crowd: onNode.get(pod.spec?.nodeName ?? '') ?? 0 }))
    .sort((a, b) => compareForDeletion(a, b, nowMs))
    .slice(0, count)
    .map((ranked) => ranked.pod);
}

function compareForDeletion(a: Ranked, b: Ranked, nowMs: number): number {
  const assigned = Number(hasNode(a.pod)) - Number(hasNode(b.pod));
  if (assigned !== 0) return assigned;
  const phase = phaseRank(a.pod) - phaseRank(b.pod);
  if (phase !== 0) return phase;
  const readyA = isPodReady(a.pod);
  const readyB = isPodReady(b.pod);
  if (readyA !== readyB) return readyA ? 1 : -1;
  const cost = deletionCost(a.pod) - deletionCost(b.pod);
  if (cost !== 0) return cost;
  if (a.crowd !== b.crowd) return b.crowd - a.crowd;
  if (readyA && readyB) {
    const age = magnitude(readySinceMs(a.pod), nowMs) - magnitude(readySinceMs(b.pod), nowMs);
    if (age !== 0) return age;
  }
  const restarts = maxRestarts(b.pod) - maxRestarts(a.pod);
  if (restarts !== 0) return restarts;
  const created =
    magnitude(timeMs(a.pod.metadata?.creationTimestamp), nowMs) -
    magnitude(timeMs(b.pod.metadata?.creationTimestamp), nowMs);
  if (created !== 0) return created;
  // Upstream orders pods of one order of magnitude by UID. This order has no meaning, but must be deterministic.
  return (a.pod.metadata?.uid ?? '') < (b.pod.metadata?.uid ?? '') ? -1 : 1;
}

const hasNode = (pod: Pod): boolean => (pod.spec?.nodeName ?? '') !== '';
const phaseRank = (pod: Pod): number => PHASE_RANK[pod.status?.phase ?? 'Pending'] ?? 0;

function deletionCost(pod: Pod): number {
  const text = pod.metadata?.annotations?.[DELETION_COST];
  return text !== undefined && /^[+-]?\d{1,10}$/.test(text) ? Number(text) : 0;
}

const readySinceMs = (pod: Pod): number => timeMs(podCondition(pod, 'Ready')?.lastTransitionTime);

/**
 * Order of magnitude (base 2) of an age in seconds, as upstream's LogarithmicScaleDown. An unknown time counts as the
 * youngest.
 */
function magnitude(sinceMs: number, nowMs: number): number {
  if (sinceMs === 0) return -1;
  const seconds = Math.max(0, nowMs - sinceMs) / 1000;
  return seconds < 1 ? 0 : Math.floor(Math.log2(seconds)) + 1;
}

function maxRestarts(pod: Pod): number {
  let restarts = 0;
  for (const status of pod.status?.containerStatuses ?? []) restarts = Math.max(restarts, status.restartCount);
  return restarts;
}
