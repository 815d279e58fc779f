/** Daemon sets: one pod on every node that should have one. Source: upstream's pkg/controller/daemon. */

import type { DaemonSet, DaemonSetStatus } from '../../../api/generated/apps/v1.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { omitEmpty, omitUndefined } from '../../../base/json/omit-fields.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import { resolveIntOrPercent } from '../../framework/core/int-or-percent.ts';
import type { PlanContext, PlannedEvent } from '../../framework/core/plan-context.ts';
import { availableInMs, isPodAvailable, isPodReady, isPodTerminal } from '../../framework/core/pods.ts';
import { nodeOfDaemonPod, REVISION_HASH } from './pod.ts';

export interface NodeDecision {
  readonly name: string;
  /** Whether the node should run a pod of the set. */
  readonly shouldRun: boolean;
  /** Whether an existing pod may stay. A NoSchedule taint, for example, does not evict it. */
  readonly shouldContinue: boolean;
}

export interface DaemonSnapshot {
  readonly set: DaemonSet;
  readonly pods: readonly Pod[];
  readonly nodes: readonly NodeDecision[];
  /** Revision hash of the current template. */
  readonly hash: string;
  readonly settled: boolean;
  /** Whether a failed pod on this node may be replaced now; false during its back-off. */
  mayReplaceFailed(node: string): boolean;
}

export interface DaemonPlan {
  /** Names of nodes that get one pod each. */
  readonly create: readonly string[];
  readonly delete: readonly Pod[];
  readonly events: readonly PlannedEvent[];
}

const BURST = 250;

export function planDaemonPods(snapshot: DaemonSnapshot, context: PlanContext): DaemonPlan {
  const events: PlannedEvent[] = [];
  if (!snapshot.settled || snapshot.set.metadata?.deletionTimestamp !== undefined) {
    return { create: [], delete: [], events };
  }
  const byNode = podsByNode(snapshot.pods);
  const create: string[] = [];
  const doomed: Pod[] = [];
  for (const node of snapshot.nodes) {
    const pods = byNode.get(node.name) ?? [];
    if (node.shouldRun && pods.length === 0) create.push(node.name);
    else if (!node.shouldContinue) doomed.push(...pods.filter(isStaying));
    else doomed.push(...surplusOn(node.name, pods, snapshot, events, context));
  }
  // Pods that run on a deleted node are deleted by the pod garbage collector. Pods that were not scheduled before their
  // node was deleted are deleted here.
  const known = new Set(snapshot.nodes.map((node) => node.name));
  for (const pod of snapshot.pods) {
    if ((pod.spec?.nodeName ?? '') === '' && isStaying(pod) && !known.has(nodeOfDaemonPod(pod) ?? '')) doomed.push(pod);
  }
  if (create.length === 0 && doomed.length === 0) return planUpdate(snapshot, byNode, events, context);
  return { create: create.slice(0, BURST), delete: doomed.slice(0, BURST), events };
}

/**
 * Pods to delete on a node: finished pods, and all running pods but the oldest (with surge, all but the new one once it
 * is available).
 */
function surplusOn(
  node: string,
  pods: readonly Pod[],
  snapshot: DaemonSnapshot,
  events: PlannedEvent[],
  context: PlanContext,
): Pod[] {
  const doomed: Pod[] = [];
  const running: Pod[] = [];
  for (const pod of pods) {
    if (!isStaying(pod)) continue;
    const phase = pod.status?.phase;
    if (phase !== 'Failed' && phase !== 'Succeeded') {
      running.push(pod);
      continue;
    }
    if (phase === 'Failed' && !snapshot.mayReplaceFailed(node)) continue;
    const key = `${pod.metadata?.namespace ?? ''}/${pod.metadata?.name ?? ''}`;
    events.push({
      type: phase === 'Failed' ? 'Warning' : 'Normal',
      reason: `${phase}DaemonPod`,
      message: `Found ${phase.toLowerCase()} daemon pod ${key} on node ${node}, will try to ${phase === 'Failed' ? 'kill' : 'delete'} it`,
    });
    doomed.push(pod);
  }
  if (running.length <= 1) return doomed;
  const sorted = [...running].sort(byCreation);
  if (surgeOf(snapshot.set, snapshot.nodes) === 0) return [...doomed, ...sorted.slice(1)];
  const fresh = sorted.filter((pod) => hashOf(pod) === snapshot.hash);
  const stale = sorted.filter((pod) => hashOf(pod) !== snapshot.hash);
  const [freshest, ...otherFresh] = fresh;
  const [stalest, ...otherStale] = stale;
  doomed.push(...otherFresh, ...otherStale);
  if (freshest !== undefined && stalest !== undefined && isAvailable(freshest, snapshot.set, context)) {
    doomed.push(stalest);
  }
  return doomed;
}

function planUpdate(
  snapshot: DaemonSnapshot,
  byNode: ReadonlyMap<string, readonly Pod[]>,
  events: readonly PlannedEvent[],
  context: PlanContext,
): DaemonPlan {
  const { set } = snapshot;
  if (set.spec?.updateStrategy?.type === 'OnDelete') return { create: [], delete: [], events };
  const eligible = snapshot.nodes.filter((node) => node.shouldRun);
  const surge = surgeOf(set, snapshot.nodes);
  if (surge > 0) return { create: surgeNodes(snapshot, eligible, byNode, surge, context), delete: [], events };
  const rolling = set.spec?.updateStrategy?.rollingUpdate;
  const maxUnavailable = Math.max(1, resolveIntOrPercent(rolling?.maxUnavailable, eligible.length, 'up', 1));
  let unavailable = 0;
  const useless: Pod[] = [];
  const candidates: Pod[] = [];
  for (const node of eligible) {
    const staying = (byNode.get(node.name) ?? []).filter(isStaying);
    const [pod] = staying;
    if (pod === undefined || staying.length > 1) {
      unavailable++;
    } else if (hashOf(pod) === snapshot.hash) {
      if (!isAvailable(pod, set, context)) unavailable++;
    } else if (!isAvailable(pod, set, context)) {
      // The pod is not available anyway, so replacing it costs no availability.
      useless.push(pod);
      unavailable++;
    } else candidates.push(pod);
  }
  const allowed = Math.max(0, maxUnavailable - unavailable);
  return { create: [], delete: [...useless, ...candidates.slice(0, allowed)], events };
}

/** Nodes that get a new pod beside the old one. The old pod is deleted once the new one is available. */
function surgeNodes(
  snapshot: DaemonSnapshot,
  eligible: readonly NodeDecision[],
  byNode: ReadonlyMap<string, readonly Pod[]>,
  surge: number,
  context: PlanContext,
): string[] {
  let surging = 0;
  const free: string[] = [];
  const candidates: string[] = [];
  for (const node of eligible) {
    const staying = (byNode.get(node.name) ?? []).filter(isStaying);
    const hasFresh = staying.some((pod) => hashOf(pod) === snapshot.hash);
    const stale = staying.find((pod) => hashOf(pod) !== snapshot.hash);
    if (stale === undefined) continue;
    if (hasFresh) surging++;
    else if (!isAvailable(stale, snapshot.set, context)) free.push(node.name);
    else candidates.push(node.name);
  }
  return [...free, ...candidates.slice(0, Math.max(0, surge - surging))];
}

export interface DaemonStatusPlan {
  readonly status: DaemonSetStatus | undefined;
  readonly recheckAfterMs: number | undefined;
}

export function planDaemonStatus(snapshot: DaemonSnapshot, context: PlanContext): DaemonStatusPlan {
  const { set } = snapshot;
  const byNode = podsByNode(snapshot.pods);
  const counts = { desired: 0, current: 0, misscheduled: 0, ready: 0, updated: 0, available: 0 };
  let recheckAfterMs: number | undefined;
  for (const node of snapshot.nodes) {
    const pods = [...(byNode.get(node.name) ?? [])].sort(byCreation);
    if (!node.shouldRun) {
      if (pods.length > 0) counts.misscheduled++;
      continue;
    }
    counts.desired++;
    const pod = pods[0];
    if (pod === undefined) continue;
    counts.current++;
    if (hashOf(pod) === snapshot.hash) counts.updated++;
    if (!isPodReady(pod)) continue;
    counts.ready++;
    const waitMs = availableInMs(pod, set.spec?.minReadySeconds ?? 0, context.nowMs);
    if (waitMs === 0) counts.available++;
    else if (waitMs !== undefined) recheckAfterMs = Math.min(recheckAfterMs ?? waitMs, waitMs);
  }
  const unavailable = counts.desired - counts.available;
  const old = set.status;
  const status: DaemonSetStatus = {
    currentNumberScheduled: counts.current,
    numberMisscheduled: counts.misscheduled,
    desiredNumberScheduled: counts.desired,
    numberReady: counts.ready,
    ...omitUndefined({ observedGeneration: set.metadata?.generation }),
    ...omitEmpty({
      updatedNumberScheduled: counts.updated,
      numberAvailable: counts.available,
      numberUnavailable: unavailable,
    }),
    ...omitUndefined({ collisionCount: old?.collisionCount, conditions: old?.conditions }),
  };
  return { status: old !== undefined && sameNumbers(old, status) ? undefined : status, recheckAfterMs };
}

function sameNumbers(a: DaemonSetStatus, b: DaemonSetStatus): boolean {
  const numbers = (status: DaemonSetStatus): string =>
    [
      status.currentNumberScheduled,
      status.numberMisscheduled,
      status.desiredNumberScheduled,
      status.numberReady,
      status.observedGeneration ?? 0,
      status.updatedNumberScheduled ?? 0,
      status.numberAvailable ?? 0,
      status.numberUnavailable ?? 0,
    ].join();
  return numbers(a) === numbers(b);
}

/**
 * Pods by node. Finished pods that are being deleted are omitted, because a finalizer of such a pod must not delay its
 * successor.
 */
function podsByNode(pods: readonly Pod[]): Map<string, Pod[]> {
  const byNode = new Map<string, Pod[]>();
  for (const pod of pods) {
    const node = nodeOfDaemonPod(pod);
    if (node === undefined || (isPodTerminal(pod) && !isStaying(pod))) continue;
    const list = byNode.get(node);
    if (list === undefined) byNode.set(node, [pod]);
    else list.push(pod);
  }
  return byNode;
}

function surgeOf(set: DaemonSet, nodes: readonly NodeDecision[]): number {
  const desired = nodes.filter((node) => node.shouldRun).length;
  return resolveIntOrPercent(set.spec?.updateStrategy?.rollingUpdate?.maxSurge, desired, 'up', 0);
}

const isStaying = (pod: Pod): boolean => pod.metadata?.deletionTimestamp === undefined;
const hashOf = (pod: Pod): string | undefined => pod.metadata?.labels?.[REVISION_HASH];
const isAvailable = (pod: Pod, set: DaemonSet, context: PlanContext): boolean =>
  isPodAvailable(pod, set.spec?.minReadySeconds ?? 0, context.nowMs);

function byCreation(a: Pod, b: Pod): number {
  const age = timeMs(a.metadata?.creationTimestamp) - timeMs(b.metadata?.creationTimestamp);
  return age !== 0 ? age : (a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1;
}
