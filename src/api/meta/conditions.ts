/**
 * Conditions of a status: at most one per type, whose transition time changes only with the status. Source:
 * k8s.io/apimachinery/pkg/api/meta/conditions.go.
 */

export interface ConditionState {
  readonly type: string;
  readonly status: string;
  readonly lastTransitionTime?: string | null;
}

export function findCondition<T extends { readonly type: string }>(
  conditions: readonly T[] | undefined,
  type: string,
): T | undefined {
  return conditions?.find((each) => each.type === type);
}

/**
 * Transition time of a condition whose status is now `status`: the time of `before`, or `now` if the status changes.
 */
export function transitionTime(
  before: Pick<ConditionState, 'status' | 'lastTransitionTime'> | undefined,
  status: string,
  now: string,
): string {
  return before?.status === status ? (before.lastTransitionTime ?? now) : now;
}

/** Sets a condition. It replaces the condition of the same type, or is appended. `now` is in RFC 3339 format. */
export function withCondition<T extends ConditionState, C extends ConditionState>(
  conditions: readonly T[] | undefined,
  condition: C,
  now: string,
): (T | (C & { lastTransitionTime: string }))[] {
  const all = conditions ?? [];
  const before = findCondition(all, condition.type);
  const next = { ...condition, lastTransitionTime: transitionTime(before, condition.status, now) };
  return before === undefined ? [...all, next] : all.map((each) => (each === before ? next : each));
}
