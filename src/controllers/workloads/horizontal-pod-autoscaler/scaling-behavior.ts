/** Limits of replica changes: stabilization windows and rates. Source: KEP-853, upstream's horizontal.go. */
import type { HPAScalingPolicy, HPAScalingRules } from '../../../api/generated/autoscaling/v2.ts';

/** Default of upstream's `--horizontal-pod-autoscaler-downscale-stabilization`. */
const DOWN_STABILIZATION_SECONDS = 300;
/** Upstream's `scaleUpLimitFactor` and `scaleUpLimitMinimum`. */
const UP_FACTOR = 2;
const UP_MINIMUM = 4;
/** Longest window and period that the API accepts; older records have no effect. */
const MEMORY_MS = 3_600_000;
/** Maximum number of records of each kind. Regular evaluations make 240 in the longest window; changes add more. */
const MAX_RECORDS = 1_000;

interface Timed {
  readonly atMs: number;
  readonly replicas: number;
}

/** Recent history of an autoscaler, kept between plans. */
export interface ScaleMemory {
  readonly recommendations: readonly Timed[];
  /** Records of added replicas. */
  readonly ups: readonly Timed[];
  /** Records of removed replicas. */
  readonly downs: readonly Timed[];
}

/** Records of the last `windowMs`. Later records are ignored: the clock was set back since they were made. */
const within = (records: readonly Timed[], windowMs: number, nowMs: number): Timed[] =>
  records.filter(({ atMs }) => atMs > nowMs - windowMs && atMs <= nowMs);

export const NO_MEMORY: ScaleMemory = { recommendations: [], ups: [], downs: [] };

export interface Behavior {
  /** Whether the autoscaler has no `behavior`. Then the replicas may double, or increase to four, in one step. */
  readonly isDefault: boolean;
  readonly up: Required<Pick<HPAScalingRules, 'policies' | 'selectPolicy' | 'stabilizationWindowSeconds'>>;
  readonly down: Behavior['up'];
}

export function behaviorOf(behavior: { scaleUp?: HPAScalingRules; scaleDown?: HPAScalingRules } | undefined): Behavior {
  const percent = [{ type: 'Percent', value: 100, periodSeconds: 15 }];
  const fill = (rules: HPAScalingRules | undefined, policies: HPAScalingPolicy[], window: number): Behavior['up'] => ({
    policies: rules?.policies ?? policies,
    selectPolicy: rules?.selectPolicy ?? 'Max',
    stabilizationWindowSeconds: rules?.stabilizationWindowSeconds ?? window,
  });
  return {
    isDefault: behavior === undefined,
    up: fill(behavior?.scaleUp, [{ type: 'Pods', value: 4, periodSeconds: 15 }, ...percent], 0),
    down: fill(behavior?.scaleDown, percent, DOWN_STABILIZATION_SECONDS),
  };
}

/** Replicas of the target before and after a recommendation. */
export interface Scaling {
  readonly current: number;
  readonly desired: number;
}

export interface Decision {
  readonly replicas: number;
  readonly reason: string;
  readonly message: string;
}

/** Stabilized recommendation: the lowest recent recommendation when scaling up, the highest when scaling down. */
export function stabilize(
  memory: ScaleMemory,
  behavior: Behavior,
  { current, desired }: Scaling,
  nowMs: number,
): Decision {
  const recent = (seconds: number): number[] =>
    within(memory.recommendations, seconds * 1000, nowMs).map((each) => each.replicas);
  const lowest = Math.min(desired, ...recent(behavior.up.stabilizationWindowSeconds));
  const highest = Math.max(desired, ...recent(behavior.down.stabilizationWindowSeconds));
  const replicas = Math.min(Math.max(current, lowest), highest);
  if (replicas === desired) {
    return { replicas, reason: 'ReadyForNewScale', message: 'recommended size matches current size' };
  }
  if (replicas > desired) {
    const message = 'recent recommendations were higher than current one, applying the highest recent recommendation';
    return { replicas, reason: 'ScaleDownStabilized', message };
  }
  const message = 'recent recommendations were lower than current one, applying the lowest recent recommendation';
  return { replicas, reason: 'ScaleUpStabilized', message };
}

/** Limits a recommendation by bounds and rates. `reason` is DesiredWithinRange if no limit applies. */
export function limit(
  memory: ScaleMemory,
  behavior: Behavior,
  { current, desired, min, max }: Scaling & { readonly min: number; readonly max: number },
  nowMs: number,
): Decision {
  const change = (events: readonly Timed[], seconds: number): number =>
    within(events, seconds * 1000, nowMs).reduce((sum, each) => sum + each.replicas, 0);
  const before = (seconds: number): number => current - change(memory.ups, seconds) + change(memory.downs, seconds);
  if (desired > current) {
    const { policies, selectPolicy } = behavior.up;
    const doubled = Math.max(current * UP_FACTOR, UP_MINIMUM);
    const reach = policies.map(({ type, value, periodSeconds }) => {
      const start = before(periodSeconds);
      return type === 'Pods' ? start + value : Math.ceil(start * (1 + value / 100));
    });
    const rate = behavior.isDefault
      ? doubled
      : Math.max(current, choose(selectPolicy, current, Math.max(...reach), Math.min(...reach)));
    const most = Math.min(max, rate);
    if (desired > most) {
      return max > rate
        ? limited(most, 'ScaleUpLimit', 'the desired replica count is increasing faster than the maximum scale rate')
        : limited(most, 'TooManyReplicas', 'the desired replica count is more than the maximum replica count');
    }
  } else if (desired < current) {
    const { policies, selectPolicy } = behavior.down;
    const reach = policies.map(({ type, value, periodSeconds }) => {
      const start = before(periodSeconds);
      return type === 'Pods' ? start - value : Math.trunc(start * (1 - value / 100));
    });
    const rate = Math.min(current, choose(selectPolicy, current, Math.min(...reach), Math.max(...reach)));
    const fewest = Math.max(min, rate);
    if (desired < fewest) {
      return min < rate
        ? limited(
            fewest,
            'ScaleDownLimit',
            'the desired replica count is decreasing faster than the maximum scale rate',
          )
        : limited(fewest, 'TooFewReplicas', 'the desired replica count is less than the minimum replica count');
    }
  }
  return limited(desired, 'DesiredWithinRange', 'the desired count is within the acceptable range');
}

const limited = (replicas: number, reason: string, message: string): Decision => ({ replicas, reason, message });

function choose(policy: string, none: number, most: number, least: number): number {
  return policy === 'Disabled' ? none : policy === 'Min' ? least : most;
}

export function recordRecommendation(memory: ScaleMemory, recommendation: number, nowMs: number): ScaleMemory {
  const recent = (events: readonly Timed[]): Timed[] => within(events, MEMORY_MS, nowMs).slice(1 - MAX_RECORDS);
  return {
    recommendations: [...recent(memory.recommendations), { atMs: nowMs, replicas: recommendation }],
    ups: recent(memory.ups),
    downs: recent(memory.downs),
  };
}

/** Updates the history after the scale was written. */
export function recordRescale(memory: ScaleMemory, from: number, to: number, nowMs: number): ScaleMemory {
  const event = { atMs: nowMs, replicas: Math.abs(to - from) };
  return to > from ? { ...memory, ups: [...memory.ups, event] } : { ...memory, downs: [...memory.downs, event] };
}
