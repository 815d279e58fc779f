/** Conditions of machines, one per type. The transition time changes only if the status of the condition changes. */

import { transitionTime } from '../../../api/meta/conditions.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { MachineCondition } from '../kinds/machine-types.ts';

export interface Observed {
  readonly type: string;
  readonly status: MachineCondition['status'];
  readonly severity?: string;
  readonly reason?: string;
  readonly message?: string;
}

export const isTrue = (type: string): Observed => ({ type, status: 'True' });

export const isFalse = (type: string, reason: string, message: string, severity = 'Warning'): Observed => ({
  type,
  status: 'False',
  severity,
  reason,
  message,
});

/** Conditions after an observation, sorted by type as OpenShift sorts them. */
export function withConditions(
  before: readonly MachineCondition[] | undefined,
  observed: readonly Observed[],
  nowMs: number,
): MachineCondition[] {
  const byType = new Map((before ?? []).map((each) => [each.type, each]));
  for (const each of observed) {
    const old = byType.get(each.type);
    byType.set(each.type, { ...each, lastTransitionTime: transitionTime(old, each.status, timestamp(nowMs)) });
  }
  return [...byType.values()].sort((left, right) => (left.type < right.type ? -1 : 1));
}
