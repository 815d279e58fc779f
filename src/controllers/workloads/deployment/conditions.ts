/** Conditions of a deployment. `kubectl rollout status` reads these reasons. */

import type { DeploymentCondition } from '../../../api/generated/apps/v1.ts';
import { transitionTime } from '../../../api/meta/conditions.ts';
import { timestamp } from '../../../base/time/timestamps.ts';

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

/** Condition without its times. */
export interface ConditionState {
  readonly type: ConditionType;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** Sets a condition. A condition with the same status and reason is not changed. */
export function setCondition(
  conditions: readonly DeploymentCondition[],
  next: ConditionState,
  nowMs: number,
): DeploymentCondition[] {
  const current = findCondition(conditions, next.type);
  if (current?.status === next.status && current.reason === next.reason) return [...conditions];
  return renewCondition(conditions, next, nowMs);
}

/** Like `setCondition`, but also updates message and update time when status and reason are unchanged. */
export function renewCondition(
  conditions: readonly DeploymentCondition[],
  { type, status, reason, message }: ConditionState,
  nowMs: number,
): DeploymentCondition[] {
  const now = timestamp(nowMs);
  const lastTransitionTime = transitionTime(findCondition(conditions, type), status, now);
  const renewed = { type, status, lastUpdateTime: now, lastTransitionTime, reason, message };
  return [...removeCondition(conditions, type), renewed];
}
