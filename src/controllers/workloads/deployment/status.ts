/**
 * Status of a deployment, and whether its roll-out is complete, progressing or stuck. Source: upstream's
 * deployment/progress.go.
 */

import type { Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet } from '../../../api/generated/apps/v1.ts';
import { omitEmpty, omitUndefined } from '../../../base/json/omit-fields.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import { equalIgnoringEmptyLists } from '../../framework/core/equality.ts';
import { type ConditionState, findCondition, removeCondition, renewCondition, setCondition } from './conditions.ts';
import { type Sizes, totalAvailable, totalReady, totalReplicas, totalSpecReplicas } from './sizes.ts';

export const REASON = {
  available: 'MinimumReplicasAvailable',
  unavailable: 'MinimumReplicasUnavailable',
  complete: 'NewReplicaSetAvailable',
  updated: 'ReplicaSetUpdated',
  timedOut: 'ProgressDeadlineExceeded',
  found: 'FoundNewReplicaSet',
  created: 'NewReplicaSetCreated',
  createFailed: 'ReplicaSetCreateError',
  paused: 'DeploymentPaused',
  resumed: 'DeploymentResumed',
} as const;

/** kubectl and the API default use this value for "no deadline". */
const NO_DEADLINE = 2_147_483_647;

export function progressDeadlineMs(deployment: Deployment): number | undefined {
  const seconds = deployment.spec?.progressDeadlineSeconds;
  return seconds === undefined || seconds === NO_DEADLINE ? undefined : seconds * 1000;
}

export interface StatusInput {
  readonly deployment: Deployment;
  /** Conditions as modified earlier in this plan. */
  readonly conditions: readonly DeploymentCondition[];
  readonly current: ReplicaSet | undefined;
  readonly old: readonly ReplicaSet[];
  readonly sizes: Sizes;
  readonly nowMs: number;
  /** Whether conditions of the roll-out may change; false while the deployment is paused or being scaled. */
  readonly assessProgress: boolean;
}

export interface StatusPlan {
  /** New status; undefined if it is unchanged. */
  readonly status: DeploymentStatus | undefined;
  readonly complete: boolean;
  /** Time until the deadline must be checked again. */
  readonly recheckAfterMs: number | undefined;
}

export function planStatus(input: StatusInput): StatusPlan {
  const { deployment, nowMs } = input;
  const old: DeploymentStatus = deployment.status ?? {};
  const status = countStatus(input);
  const complete = isComplete(deployment, status, input.sizes);
  if (input.assessProgress) status.conditions = conditionsOf(input, old, status, complete);
  const recheckAfterMs = input.assessProgress ? deadlineInMs(deployment, status, complete, nowMs) : undefined;
  if (status.conditions?.length === 0) delete status.conditions;
  return { status: sameStatus(old, status) ? undefined : status, complete, recheckAfterMs };
}

function countStatus(input: StatusInput): DeploymentStatus {
  const { deployment, sizes, nowMs, current } = input;
  const all = current === undefined ? input.old : [...input.old, current];
  const available = totalAvailable(all);
  const ready = totalReady(all);
  const replicas = totalReplicas(all);
  const updated = current === undefined ? 0 : totalReplicas([current]);
  const unavailable = Math.max(0, totalSpecReplicas(all) - available);
  const minimum = sizes.rolling ? sizes.replicas - sizes.maxUnavailable : sizes.replicas;
  const availability: ConditionState =
    available >= minimum
      ? {
          type: 'Available',
          status: 'True',
          reason: REASON.available,
          message: 'Deployment has minimum availability.',
        }
      : {
          type: 'Available',
          status: 'False',
          reason: REASON.unavailable,
          message: 'Deployment does not have minimum availability.',
        };
  const conditions = setCondition(input.conditions, availability, nowMs);
  return {
    ...omitUndefined({ observedGeneration: deployment.metadata?.generation }),
    ...omitEmpty({
      replicas,
      updatedReplicas: updated,
      readyReplicas: ready,
      availableReplicas: available,
      unavailableReplicas: unavailable,
    }),
    ...omitUndefined({ collisionCount: deployment.status?.collisionCount }),
    conditions,
  };
}

function isComplete(deployment: Deployment, status: DeploymentStatus, sizes: Sizes): boolean {
  return (
    (status.updatedReplicas ?? 0) === sizes.replicas &&
    (status.replicas ?? 0) === sizes.replicas &&
    (status.availableReplicas ?? 0) === sizes.replicas &&
    (status.observedGeneration ?? 0) >= (deployment.metadata?.generation ?? 0)
  );
}

function isProgressing(old: DeploymentStatus, status: DeploymentStatus): boolean {
  const outdated = (each: DeploymentStatus): number => (each.replicas ?? 0) - (each.updatedReplicas ?? 0);
  return (
    (status.updatedReplicas ?? 0) > (old.updatedReplicas ?? 0) ||
    outdated(status) < outdated(old) ||
    (status.readyReplicas ?? 0) > (old.readyReplicas ?? 0) ||
    (status.availableReplicas ?? 0) > (old.availableReplicas ?? 0)
  );
}

function conditionsOf(
  input: StatusInput,
  old: DeploymentStatus,
  status: DeploymentStatus,
  complete: boolean,
): DeploymentCondition[] {
  const { deployment, current, nowMs } = input;
  let conditions = status.conditions ?? [];
  const progress = findCondition(conditions, 'Progressing');
  const deadlineMs = progressDeadlineMs(deployment);
  const subject =
    current === undefined
      ? `Deployment "${deployment.metadata?.name ?? ''}"`
      : `ReplicaSet "${current.metadata?.name ?? ''}"`;
  if (deadlineMs === undefined) conditions = removeCondition(conditions, 'Progressing');
  const alreadyComplete =
    (status.replicas ?? 0) === (status.updatedReplicas ?? 0) && progress?.reason === REASON.complete;
  if (deadlineMs !== undefined && !alreadyComplete) {
    if (complete) {
      conditions = setCondition(
        conditions,
        {
          type: 'Progressing',
          status: 'True',
          reason: REASON.complete,
          message: `${subject} has successfully progressed.`,
        },
        nowMs,
      );
    } else if (isProgressing(old, status)) {
      conditions = renewCondition(
        conditions,
        { type: 'Progressing', status: 'True', reason: REASON.updated, message: `${subject} is progressing.` },
        nowMs,
      );
    } else if (hasTimedOut(progress, deadlineMs, nowMs)) {
      conditions = setCondition(
        conditions,
        {
          type: 'Progressing',
          status: 'False',
          reason: REASON.timedOut,
          message: `${subject} has timed out progressing.`,
        },
        nowMs,
      );
    }
  }
  const failure = replicaFailure(input);
  conditions = removeCondition(conditions, 'ReplicaFailure');
  return failure === undefined ? conditions : [...conditions, failure];
}

function hasTimedOut(progress: DeploymentCondition | undefined, deadlineMs: number, nowMs: number): boolean {
  if (progress === undefined || progress.reason === REASON.complete) return false;
  if (progress.reason === REASON.timedOut) return true;
  return nowMs > timeMs(progress.lastUpdateTime, nowMs) + deadlineMs;
}

function deadlineInMs(
  deployment: Deployment,
  status: DeploymentStatus,
  complete: boolean,
  nowMs: number,
): number | undefined {
  const deadlineMs = progressDeadlineMs(deployment);
  const progress = findCondition(status.conditions ?? [], 'Progressing');
  if (deadlineMs === undefined || progress === undefined || complete) return undefined;
  if (progress.reason === REASON.timedOut || progress.reason === REASON.complete) return undefined;
  // One second is added because API times are whole seconds and an early check would find no change.
  return Math.max(1000, timeMs(progress.lastUpdateTime, nowMs) + deadlineMs - nowMs + 1000);
}

/** Failure condition of the current replica set, otherwise of any old replica set. */
function replicaFailure(input: StatusInput): DeploymentCondition | undefined {
  for (const set of input.current === undefined ? input.old : [input.current, ...input.old]) {
    const failure = set.status?.conditions?.find((condition) => condition.type === 'ReplicaFailure');
    if (failure === undefined) continue;
    const since = failure.lastTransitionTime;
    return {
      type: 'ReplicaFailure',
      status: failure.status,
      ...(since === undefined ? {} : { lastUpdateTime: since, lastTransitionTime: since }),
      ...(failure.reason === undefined ? {} : { reason: failure.reason }),
      ...(failure.message === undefined ? {} : { message: failure.message }),
    };
  }
  return undefined;
}

function sameStatus(a: DeploymentStatus, b: DeploymentStatus): boolean {
  const numbers = (status: DeploymentStatus): number[] => [
    status.observedGeneration ?? 0,
    status.replicas ?? 0,
    status.updatedReplicas ?? 0,
    status.readyReplicas ?? 0,
    status.availableReplicas ?? 0,
    status.unavailableReplicas ?? 0,
    status.collisionCount ?? 0,
  ];
  return equalIgnoringEmptyLists(numbers(a), numbers(b)) && equalIgnoringEmptyLists(a.conditions, b.conditions);
}
