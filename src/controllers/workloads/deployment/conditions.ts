/** Conditions of a deployment. `kubectl rollout status` reads these reasons. */

import type { DeploymentCondition } from '../../../api/generated/apps/v1.ts';
import { transitionTime } from '../../../api/meta/conditions.ts';
import { timestamp } from '../../../base/times.ts';

export type ConditionType = 'Available' | 'Progressing' | 'ReplicaFailure';

export function findCondition(
  conditions: readonly DeploymentCondition[],
  type: ConditionType,
): DeploymentCondition | undefined {
  return conditions.find((condition) => condition.type === type);
}

export function removeCondition(
  conditions: readonly DeploymentCondition[],
  type: ConditionType,
): DeploymentCondition[] {
  return conditions.filter((condition) => condition.type !== type);
}

/** Sets a condition. A condition with the same status and reason is not changed. */
export function setCondition(
  conditions: readonly DeploymentCondition[],
  type: ConditionType,
  status: 'True' | 'False' | 'Unknown',
  reason: string,
  message: string,
  nowMs: number,
): DeploymentCondition[] {
  const current = findCondition(conditions, type);
  if (current?.status === status && current.reason === reason) return [...conditions];
  return [...removeCondition(conditions, type), condition(current, type, status, reason, message, nowMs)];
}

/** Like `setCondition`, but also updates message and update time when status and reason are unchanged. */
export function renewCondition(
  conditions: readonly DeploymentCondition[],
  type: ConditionType,
  status: 'True' | 'False' | 'Unknown',
  reason: string,
  message: string,
  nowMs: number,
): DeploymentCondition[] {
  const current = findCondition(conditions, type);
  return [...removeCondition(conditions, type), condition(current, type, status, reason, message, nowMs)];
}

function condition(
  current: DeploymentCondition | undefined,
  type: ConditionType,
  status: string,
  reason: string,
  message: string,
  nowMs: number,
): DeploymentCondition {
  const now = timestamp(nowMs);
  return {
    type,
    status,
    lastUpdateTime: now,
    lastTransitionTime: transitionTime(current, status, now),
    reason,
    message,
  };
}
