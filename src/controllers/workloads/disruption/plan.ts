/**
 * Status of a disruption budget: the number of healthy pods, the required number, and the evictions allowed now.
 * Source: pkg/controller/disruption.
 */

import type { Pod } from '../../../api/generated/core/v1.ts';
import type { Condition, OwnerReference } from '../../../api/generated/meta/v1.ts';
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from '../../../api/generated/policy/v1.ts';
import { withCondition } from '../../../api/meta/conditions.ts';
import { timeMs, timestamp } from '../../../base/time/timestamps.ts';
import { equalIgnoringEmptyLists } from '../../framework/core/equality.ts';
import { resolveIntOrPercent } from '../../framework/core/int-or-percent.ts';
import { controllerOf } from '../../framework/core/ownership.ts';
import type { PlanContext, PlannedEvent } from '../../framework/core/plan-context.ts';
import { isPodReady } from '../../framework/core/pods.ts';
import type { ControllerScale } from './scale.ts';

/** Time after which a pod counts as healthy again if its eviction was allowed but the pod is not being deleted. */
const DELETION_TIMEOUT_MS = 2 * 60_000;
const DISRUPTION_ALLOWED = 'DisruptionAllowed';

export interface BudgetSnapshot {
  readonly budget: PodDisruptionBudget;
  /** Pods in the budget's namespace that it selects. */
  readonly pods: readonly Pod[];
  /** Scales by the UID of the pods' controllers. Required only for the controllers that `controllersToRead` returns. */
  readonly scales: ReadonlyMap<string, ControllerScale>;
}

export interface BudgetPlan {
  /** New status; undefined if it is unchanged. */
  readonly status: PodDisruptionBudgetStatus | undefined;
  readonly events: readonly PlannedEvent[];
  /** Pods whose eviction was allowed but that were not deleted. Each gets a Warning `NotDeleted`. */
  readonly notDeleted: readonly Pod[];
  /** Time until the next allowed eviction times out. */
  readonly recheckAfterMs: number | undefined;
}

/** Whether the budget is computed from the scale of the pods' controllers instead of the number of existing pods. */
export function isCountedByScale({ spec }: PodDisruptionBudget): boolean {
  return spec?.maxUnavailable !== undefined || typeof spec?.minAvailable === 'string';
}

/** Distinct controllers whose scale the plan needs. */
export function controllersToRead(budget: PodDisruptionBudget, pods: readonly Pod[]): OwnerReference[] {
  if (!isCountedByScale(budget)) return [];
  const references = new Map<string, OwnerReference>();
  for (const pod of pods) {
    const reference = controllerOf(pod);
    if (reference !== undefined) references.set(reference.uid, reference);
  }
  return [...references.values()];
}

export function planBudget({ budget, pods, scales }: BudgetSnapshot, { nowMs }: PlanContext): BudgetPlan {
  const events: PlannedEvent[] = [];
  if (pods.length === 0) events.push({ type: 'Normal', reason: 'NoPods', message: 'No matching pods found' });
  if (isCountedByScale(budget) && pods.some((pod) => controllerOf(pod) === undefined)) {
    const message =
      'Pods selected by this PodDisruptionBudget were found to be unmanaged: they are not among the expected ones. ' +
      'To account for these pods set ".spec.minAvailable" to an integer.';
    events.push({ type: 'Warning', reason: 'UnmanagedPods', message });
  }
  const { expectedPods, desiredHealthy } = expectation(budget, pods, scales);
  const { disruptedPods, notDeleted, recheckAfterMs } = disruptions(budget, pods, nowMs);
  const currentHealthy = pods.filter(
    (pod) => !isDeleting(pod) && !disruptedPods.has(pod.metadata?.name ?? '') && isPodReady(pod),
  ).length;
  // A budget without expected pods allows no eviction, because its first pods may exist before they are counted.
  const disruptionsAllowed = expectedPods <= 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy);
  const status: PodDisruptionBudgetStatus = {
    currentHealthy,
    desiredHealthy,
    expectedPods,
    disruptionsAllowed,
    ...(disruptedPods.size === 0 ? {} : { disruptedPods: Object.fromEntries(disruptedPods) }),
    observedGeneration: budget.metadata?.generation ?? 0,
    conditions: conditionsWith(budget, nowMs, {
      status: disruptionsAllowed > 0 ? 'True' : 'False',
      reason: disruptionsAllowed > 0 ? 'SufficientPods' : 'InsufficientPods',
      message: '',
      observedGeneration: budget.metadata?.generation ?? 0,
    }),
  };
  return {
    status: equalIgnoringEmptyLists(status, budget.status) ? undefined : status,
    events,
    notDeleted,
    recheckAfterMs,
  };
}

/** Status after a failed computation: it allows no eviction and contains the reason. Undefined if unchanged. */
export function planFailure(
  budget: PodDisruptionBudget,
  message: string,
  { nowMs }: PlanContext,
): PodDisruptionBudgetStatus | undefined {
  const known = budget.status;
  const status: PodDisruptionBudgetStatus = {
    currentHealthy: 0,
    desiredHealthy: 0,
    expectedPods: 0,
    ...known,
    disruptionsAllowed: 0,
    conditions: conditionsWith(budget, nowMs, {
      status: 'False',
      reason: 'SyncFailed',
      message,
      observedGeneration: known?.observedGeneration ?? 0,
    }),
  };
  return equalIgnoringEmptyLists(status, known) ? undefined : status;
}

function expectation(
  budget: PodDisruptionBudget,
  pods: readonly Pod[],
  scales: ReadonlyMap<string, ControllerScale>,
): { readonly expectedPods: number; readonly desiredHealthy: number } {
  const { minAvailable, maxUnavailable } = budget.spec ?? {};
  if (maxUnavailable === undefined && minAvailable === undefined) return { expectedPods: 0, desiredHealthy: 0 };
  if (maxUnavailable === undefined && typeof minAvailable === 'number') {
    return { expectedPods: pods.length, desiredHealthy: minAvailable };
  }
  // Replicas by UID of the scale, because several replica sets of one deployment share its scale.
  const replicas = new Map<string, number>();
  for (const { uid } of controllersToRead(budget, pods)) {
    const scale = scales.get(uid);
    if (scale !== undefined) replicas.set(scale.uid, scale.replicas);
  }
  const expectedPods = [...replicas.values()].reduce((sum, each) => sum + each, 0);
  const desiredHealthy =
    maxUnavailable === undefined
      ? resolveIntOrPercent(minAvailable, expectedPods, 'up', 0)
      : Math.max(0, expectedPods - resolveIntOrPercent(maxUnavailable, expectedPods, 'up', 0));
  return { expectedPods, desiredHealthy };
}

/** Allowed evictions that have not timed out. */
function disruptions(
  budget: PodDisruptionBudget,
  pods: readonly Pod[],
  nowMs: number,
): {
  readonly disruptedPods: ReadonlyMap<string, string>;
  readonly notDeleted: readonly Pod[];
  readonly recheckAfterMs: number | undefined;
} {
  const allowed = new Map(Object.entries(budget.status?.disruptedPods ?? {}));
  const disruptedPods = new Map<string, string>();
  const notDeleted: Pod[] = [];
  let recheckAfterMs: number | undefined;
  for (const pod of pods) {
    const name = pod.metadata?.name ?? '';
    const since = allowed.get(name);
    if (since === undefined || isDeleting(pod)) continue;
    const remainingMs = timeMs(since) + DELETION_TIMEOUT_MS - nowMs;
    if (remainingMs <= 0) {
      notDeleted.push(pod);
      continue;
    }
    disruptedPods.set(name, since);
    recheckAfterMs = Math.min(recheckAfterMs ?? remainingMs, remainingMs);
  }
  return { disruptedPods, notDeleted, recheckAfterMs };
}

const isDeleting = (pod: Pod): boolean => pod.metadata?.deletionTimestamp !== undefined;

function conditionsWith(
  budget: PodDisruptionBudget,
  nowMs: number,
  facts: Pick<Condition, 'status' | 'reason' | 'message' | 'observedGeneration'>,
): Condition[] {
  return withCondition(budget.status?.conditions, { type: DISRUPTION_ALLOWED, ...facts }, timestamp(nowMs));
}
