/**
 * Health of nodes. A kubelet renews a Lease every few seconds and updates its status occasionally. If neither changes
 * for the grace period, the node's conditions become Unknown. Source: upstream's nodelifecycle controller, KEP-589
 * (node leases).
 */

import type { Lease } from '../../../api/generated/coordination/v1.ts';
import type { Node, NodeCondition } from '../../../api/generated/core/v1.ts';
import { timestamp } from '../../../base/time/timestamps.ts';

export interface HealthTimes {
  readonly gracePeriodMs: number;
  /** Grace period of nodes that have never reported. */
  readonly startupGracePeriodMs: number;
}

/**
 * Observations of a node, in this process's monotonic time. Times written by the kubelet are only compared with each
 * other, because its clock or this host's clock may be wrong.
 */
export interface NodeHealth {
  readonly renewTime: string | undefined;
  readonly statusText: string;
  /** Time of the last observed change. */
  readonly reportedAtMs: number;
  readonly hasReported: boolean;
}

export function observeHealth(
  known: NodeHealth | undefined,
  node: Node,
  lease: Lease | undefined,
  monotonicMs: number,
): NodeHealth {
  const ready = readyCondition(node);
  const renewTime = lease?.spec?.renewTime;
  // Conditions that this controller has written are ignored, because they contain no information from the kubelet.
  const statusText = ready === undefined || isOurs(ready) ? (known?.statusText ?? '') : heartbeatText(node);
  if (known !== undefined && known.renewTime === renewTime && known.statusText === statusText) return known;
  return {
    renewTime,
    statusText,
    reportedAtMs: monotonicMs,
    hasReported: ready !== undefined || renewTime !== undefined,
  };
}

const heartbeatText = (node: Node): string =>
  (node.status?.conditions ?? [])
    .map((each) => `${each.type}=${each.status}@${each.lastHeartbeatTime ?? ''}`)
    .join(',');

export function isHeartbeatOverdue(health: NodeHealth, times: HealthTimes, monotonicMs: number): boolean {
  const graceMs = health.hasReported ? times.gracePeriodMs : times.startupGracePeriodMs;
  return monotonicMs - health.reportedAtMs > graceMs;
}

/** Milliseconds until `isHeartbeatOverdue` may become true. */
export function heartbeatOverdueInMs(health: NodeHealth, times: HealthTimes, monotonicMs: number): number {
  const graceMs = health.hasReported ? times.gracePeriodMs : times.startupGracePeriodMs;
  return Math.max(0, health.reportedAtMs + graceMs - monotonicMs + 1);
}

const WATCHED = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'];
const NEVER = { reason: 'NodeStatusNeverUpdated', message: 'Kubelet never posted node status.' };
const STOPPED = { reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' };
/** Condition text for nodes whose lease has not expired yet. No pod is evicted from such a node. */
export const FAILED_IN_RING = { reason: STOPPED.reason, message: 'The gossip ring reports that the host failed.' };

/** Conditions of a node whose kubelet has stopped reporting; undefined if already set. */
export function planUnknownConditions(
  node: Node,
  nowMs: number,
  why: { readonly reason: string; readonly message: string } = STOPPED,
): NodeCondition[] | undefined {
  const conditions = [...(node.status?.conditions ?? [])];
  const now = timestamp(nowMs);
  let isChanged = false;
  for (const type of WATCHED) {
    const index = conditions.findIndex((condition) => condition.type === type);
    const current = conditions[index];
    if (current === undefined) {
      conditions.push({
        type,
        status: 'Unknown',
        ...NEVER,
        ...(node.metadata?.creationTimestamp === undefined
          ? {}
          : { lastHeartbeatTime: node.metadata.creationTimestamp }),
        lastTransitionTime: now,
      });
      isChanged = true;
    } else if (current.status !== 'Unknown') {
      conditions[index] = { ...current, status: 'Unknown', ...why, lastTransitionTime: now };
      isChanged = true;
    } else if (current.message === FAILED_IN_RING.message && current.message !== why.message) {
      conditions[index] = { ...current, ...why };
      isChanged = true;
    }
  }
  return isChanged ? conditions : undefined;
}

/** Whether only the gossip ring has declared the host dead so far. */
export function isFailedInRingOnly(node: Node): boolean {
  const ready = readyCondition(node);
  return ready?.status === 'Unknown' && ready.message === FAILED_IN_RING.message;
}

export function readyCondition(node: Node): NodeCondition | undefined {
  return node.status?.conditions?.find((condition) => condition.type === 'Ready');
}

function isOurs(condition: NodeCondition): boolean {
  return condition.status === 'Unknown' && (condition.reason === STOPPED.reason || condition.reason === NEVER.reason);
}
