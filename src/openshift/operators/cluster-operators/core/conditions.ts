/**
 * Converts assessments to conditions. Available and Progressing change immediately. Degraded becomes True only after a
 * fault has lasted two minutes, so that a restart raises no alarm. Source: openshift/library-go pkg/operator/status
 * (inertia of Degraded).
 */
import { transitionTime } from '../../../../api/meta/conditions.ts';
import { timestamp } from '../../../../base/time/timestamps.ts';
import type { ConditionStatus, OperatorCondition } from '../../kinds/config/types.ts';
import type { Assessment, Finding } from './assess.ts';

export const DEGRADED_INERTIA_MS = 120_000;
const WELL = 'AsExpected';

export interface Conditioned {
  readonly conditions: readonly OperatorCondition[];
  /** Monotonic time at which the current fault began; undefined if there is no fault. */
  readonly degradedSinceMs: number | undefined;
  /** Monotonic time at which Degraded becomes True if the fault lasts; undefined if no such change is due. */
  readonly dueMs: number | undefined;
}

/**
 * Computes the conditions of an operator.
 *
 * @param degradedSinceMs Value of the previous result.
 * @param monotonicMs Clock for the inertia of Degraded. `nowMs` is used for transition times only.
 */
export function conditionsOf(
  assessment: Assessment,
  previous: readonly OperatorCondition[],
  degradedSinceMs: number | undefined,
  { monotonicMs, nowMs }: { readonly monotonicMs: number; readonly nowMs: number },
): Conditioned {
  const { unknown, unavailable, progressing, notUpgradeable, well } = assessment;
  const since = assessment.degraded === undefined ? undefined : (degradedSinceMs ?? monotonicMs);
  const shownBefore = previous.find(({ type }) => type === 'Degraded')?.status === 'True';
  const lasted = since !== undefined && monotonicMs - since >= DEGRADED_INERTIA_MS;
  const degraded = lasted || shownBefore ? assessment.degraded : undefined;
  const at = timestamp(nowMs);
  const make = (type: string, status: ConditionStatus, { reason, message }: Finding): OperatorCondition => {
    const old = previous.find((each) => each.type === type);
    return { type, status, lastTransitionTime: transitionTime(old, status, at), reason, message };
  };
  const good = (message: string): Finding => ({ reason: WELL, message });
  const available =
    unavailable !== undefined
      ? make('Available', 'False', unavailable)
      : unknown !== undefined
        ? make('Available', 'Unknown', unknown)
        : make('Available', 'True', good(well));
  return {
    conditions: [
      available,
      progressing === undefined ? make('Progressing', 'False', good('')) : make('Progressing', 'True', progressing),
      degraded === undefined ? make('Degraded', 'False', good('')) : make('Degraded', 'True', degraded),
      notUpgradeable === undefined
        ? make('Upgradeable', 'True', good(''))
        : make('Upgradeable', 'False', notUpgradeable),
    ],
    degradedSinceMs: since,
    dueMs: since === undefined || lasted || shownBefore ? undefined : since + DEGRADED_INERTIA_MS,
  };
}
