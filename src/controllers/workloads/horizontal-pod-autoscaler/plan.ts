/**
 * Horizontal pod autoscalers: the new size of the target, with its reason. Source: upstream's
 * pkg/controller/podautoscaler.
 */

import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerCondition,
  HorizontalPodAutoscalerStatus,
  HPAScalingRules,
  MetricSpec,
  MetricStatus,
  MetricTarget,
  MetricValueStatus,
} from '../../../api/generated/autoscaling/v2.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { withCondition } from '../../../api/meta/conditions.ts';
import { messageOf } from '../../../base/errors.ts';
import { formatQuantity, quantityMilliValue, quantityOfMilli, tryParseQuantity } from '../../../base/quantity.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { PlanContext, PlannedEvent } from '../../framework/core/plan-context.ts';
import { behaviorOf, limit, recordRecommendation, type ScaleMemory, stabilize } from './scaling-behavior.ts';
import {
  type PodMetric,
  type Proposal,
  proposeByAverage,
  proposeByTotal,
  proposeByUtilization,
  proposeByValue,
  type Tolerances,
} from './usage.ts';

export type Reading =
  | { readonly type: 'pods'; readonly metrics: ReadonlyMap<string, PodMetric> }
  | { readonly type: 'value'; readonly milli: number }
  | { readonly type: 'failed'; readonly message: string };

export interface AutoscalerSnapshot {
  readonly autoscaler: HorizontalPodAutoscaler;
  readonly scale: { readonly replicas: number; readonly statusReplicas: number; readonly selector: string };
  /** Pods selected by the scale. */
  readonly pods: readonly Pod[];
  /** Readings of the metrics, in the order of the specification. */
  readonly readings: readonly Reading[];
}

export interface AutoscalerPlan {
  /** New size with its reason; undefined if the size does not change. */
  readonly rescale: { readonly replicas: number; readonly reason: string } | undefined;
  readonly status: HorizontalPodAutoscalerStatus;
  readonly events: readonly PlannedEvent[];
  readonly memory: ScaleMemory;
}

const TOLERANCE = 0.1;

export function planAutoscaler(
  snapshot: AutoscalerSnapshot,
  memory: ScaleMemory,
  context: PlanContext,
): AutoscalerPlan {
  const { autoscaler, scale } = snapshot;
  const { nowMs } = context;
  const current = scale.replicas;
  const min = autoscaler.spec?.minReplicas ?? 1;
  const max = autoscaler.spec?.maxReplicas ?? 1;
  const draft = new Draft(autoscaler, nowMs);
  const started = memory.recommendations.length === 0 ? recordRecommendation(memory, current, nowMs) : memory;
  const got = "the HPA controller was able to get the target's current scale";
  draft.condition('AbleToScale', 'True', 'SucceededGetScale', got);
  const finish = (desired: number, reason: string, next: ScaleMemory): AutoscalerPlan => ({
    rescale: desired === current ? undefined : { replicas: desired, reason },
    status: draft.status(current, desired),
    events: draft.events,
    memory: next,
  });
  if (current === 0 && min !== 0) {
    const off = 'scaling is disabled since the replica count of the target is zero';
    draft.condition('ScalingActive', 'False', 'ScalingDisabled', off);
    return finish(0, '', started);
  }
  if (current > max) return finish(max, 'Current number of replicas above Spec.MaxReplicas', started);
  if (current < min) return finish(min, 'Current number of replicas below Spec.MinReplicas', started);
  const wanted = measure(snapshot, draft, nowMs);
  if (wanted === undefined) return finish(current, '', started);
  const behavior = behaviorOf(autoscaler.spec?.behavior);
  const stable = stabilize(started, behavior, { current, desired: wanted.replicas }, nowMs);
  draft.condition('AbleToScale', 'True', stable.reason, stable.message);
  const decided = limit(started, behavior, { current, desired: stable.replicas, min, max }, nowMs);
  const isLimited = decided.reason !== 'DesiredWithinRange';
  draft.condition('ScalingLimited', isLimited ? 'True' : 'False', decided.reason, decided.message);
  const reason = decided.replicas > current ? `${wanted.metric} above target` : 'All metrics below target';
  return finish(decided.replicas, reason, recordRecommendation(started, wanted.replicas, nowMs));
}

/** Largest size that any metric requires; undefined if it cannot be determined. */
function measure(
  snapshot: AutoscalerSnapshot,
  draft: Draft,
  nowMs: number,
): { readonly replicas: number; readonly metric: string } | undefined {
  const { autoscaler, scale, readings } = snapshot;
  if (scale.selector === '') {
    const message = "the HPA target's scale is missing a selector";
    draft.condition('ScalingActive', 'False', 'InvalidSelector', message);
    draft.events.push({ type: 'Warning', reason: 'SelectorRequired', message: 'selector is required' });
    return undefined;
  }
  const specs = autoscaler.spec?.metrics ?? [];
  let best: { readonly replicas: number; readonly metric: string } | undefined;
  const failures: { readonly reason: string; readonly message: string }[] = [];
  for (const [index, spec] of specs.entries()) {
    try {
      const { proposal, metric, status } = evaluate(snapshot, spec, readings[index], nowMs);
      draft.metrics.push(status);
      if (best === undefined || proposal.replicas > best.replicas) best = { replicas: proposal.replicas, metric };
    } catch (error) {
      const message = failureMessage(spec, messageOf(error));
      failures.push({ reason: `FailedGet${spec.type}Metric`, message });
      draft.metrics.push({ type: '' });
      draft.events.push({ type: 'Warning', reason: `FailedGet${spec.type}Metric`, message });
    }
  }
  const [first] = failures;
  // If a metric is unknown, the number of replicas may increase but not decrease.
  if (best === undefined || (first !== undefined && best.replicas < scale.replicas)) {
    const { reason = 'InvalidMetricSourceType', message = 'no metrics' } = first ?? {};
    draft.condition('ScalingActive', 'False', reason, `the HPA was unable to compute the replica count: ${message}`);
    const all = `invalid metrics (${failures.length} invalid out of ${specs.length}), first error is: ${message}`;
    draft.events.push({ type: 'Warning', reason: 'FailedComputeMetricsReplicas', message: all });
    return undefined;
  }
  const found = `the HPA was able to successfully calculate a replica count from ${best.metric}`;
  draft.condition('ScalingActive', 'True', 'ValidMetricFound', found);
  return best;
}

function failureMessage(spec: MetricSpec, why: string): string {
  switch (spec.type) {
    case 'Resource':
      return `failed to get ${spec.resource?.name} utilization: ${why}`;
    case 'ContainerResource':
      return `failed to get ${spec.containerResource?.name} utilization: ${why}`;
    default:
      return `failed to get ${spec.type.toLowerCase()} metric value: ${why}`;
  }
}

interface Evaluation {
  readonly proposal: Proposal;
  readonly metric: string;
  readonly status: MetricStatus;
}

function evaluate(
  { autoscaler, scale, pods }: AutoscalerSnapshot,
  spec: MetricSpec,
  reading: Reading | undefined,
  nowMs: number,
): Evaluation {
  if (reading === undefined || reading.type === 'failed') throw new Error(reading?.message ?? 'no metrics returned');
  const tolerances = tolerancesOf(autoscaler.spec?.behavior);
  if (reading.type === 'pods') {
    const source = spec.resource ?? spec.containerResource;
    const name = source?.name ?? '';
    const replicas = scale.replicas;
    const usage = { replicas, pods, metrics: reading.metrics, isCpu: name === 'cpu', tolerances, nowMs };
    const container = spec.containerResource?.container;
    const target = source?.target ?? spec.pods?.target;
    const percent = target?.averageUtilization;
    if (source !== undefined && percent !== undefined) {
      const proposal = proposeByUtilization(usage, percent, name, container);
      const what = container === undefined ? name : `${name} container`;
      const metric = `${what} resource utilization (percentage of request)`;
      return { proposal, metric, status: statusOf(spec, averageOf(proposal)) };
    }
    const proposal = proposeByAverage(usage, milliOf(target, 'averageValue'));
    const metric = source === undefined ? `pods metric ${spec.pods?.metric.name}` : `${name} resource`;
    return { proposal, metric, status: statusOf(spec, averageOf(proposal)) };
  }
  const { target } = spec.object ?? spec.external ?? {};
  const metric = `${spec.type.toLowerCase()} metric ${(spec.object ?? spec.external)?.metric.name}`;
  if (target?.averageValue !== undefined) {
    const wanted = milliOf(target, 'averageValue');
    const proposal = proposeByTotal(reading.milli, wanted, scale.statusReplicas, tolerances);
    return { proposal, metric, status: statusOf(spec, averageOf(proposal)) };
  }
  const proposal = proposeByValue(reading.milli, milliOf(target, 'value'), scale.replicas, pods, tolerances);
  return { proposal, metric, status: statusOf(spec, { value: quantityText(proposal.usageMilli) }) };
}

function averageOf({ usageMilli, utilization }: Proposal): MetricValueStatus {
  const averageValue = quantityText(usageMilli);
  return utilization === undefined ? { averageValue } : { averageUtilization: utilization, averageValue };
}

const quantityText = (milli: number): string => formatQuantity(quantityOfMilli(Math.round(milli)));

function milliOf(target: MetricTarget | undefined, field: 'value' | 'averageValue'): number {
  const quantity = tryParseQuantity(target?.[field]);
  if (quantity === undefined) throw new Error(`invalid metric source: ${field} of the target is missing`);
  return quantityMilliValue(quantity);
}

function statusOf(spec: MetricSpec, current: MetricValueStatus): MetricStatus {
  const { type, resource, containerResource, pods, object, external } = spec;
  if (resource !== undefined) return { type, resource: { name: resource.name, current } };
  if (containerResource !== undefined) {
    const { name, container } = containerResource;
    return { type, containerResource: { name, container, current } };
  }
  if (pods !== undefined) return { type, pods: { metric: pods.metric, current } };
  if (object !== undefined) {
    return { type, object: { metric: object.metric, describedObject: object.describedObject, current } };
  }
  if (external !== undefined) return { type, external: { metric: external.metric, current } };
  return { type };
}

function tolerancesOf(behavior: { scaleUp?: HPAScalingRules; scaleDown?: HPAScalingRules } | undefined): Tolerances {
  const read = (rules: HPAScalingRules | undefined): number => {
    // `tolerance` is a field of release 1.33, which the published types lack.
    const quantity = tryParseQuantity((rules as { readonly tolerance?: unknown } | undefined)?.tolerance);
    return quantity === undefined ? TOLERANCE : quantityMilliValue(quantity) / 1000;
  };
  return { up: read(behavior?.scaleUp), down: read(behavior?.scaleDown) };
}

class Draft {
  readonly metrics: MetricStatus[] = [];
  readonly events: PlannedEvent[] = [];
  readonly #autoscaler: HorizontalPodAutoscaler;
  readonly #nowMs: number;
  #conditions: HorizontalPodAutoscalerCondition[];

  constructor(autoscaler: HorizontalPodAutoscaler, nowMs: number) {
    this.#autoscaler = autoscaler;
    this.#nowMs = nowMs;
    this.#conditions = autoscaler.status?.conditions ?? [];
  }

  condition(type: string, status: 'True' | 'False', reason: string, message: string): void {
    this.#conditions = withCondition(this.#conditions, { type, status, reason, message }, timestamp(this.#nowMs));
  }

  status(current: number, desired: number): HorizontalPodAutoscalerStatus {
    const scaledNow = desired === current ? undefined : timestamp(this.#nowMs);
    const lastScaleTime = scaledNow ?? this.#autoscaler.status?.lastScaleTime;
    const { generation } = this.#autoscaler.metadata ?? {};
    return {
      ...(generation === undefined ? {} : { observedGeneration: generation }),
      ...(lastScaleTime === undefined ? {} : { lastScaleTime }),
      currentReplicas: current,
      desiredReplicas: desired,
      ...(this.metrics.length === 0 ? {} : { currentMetrics: this.metrics }),
      conditions: this.#conditions,
    };
  }
}

/** Status after the scale could not be read or written. All other fields are kept. */
export function unableToScale(
  autoscaler: HorizontalPodAutoscaler,
  status: HorizontalPodAutoscalerStatus | undefined,
  failure: { readonly reason: 'FailedGetScale' | 'FailedUpdateScale'; readonly message: string },
  nowMs: number,
): HorizontalPodAutoscalerStatus {
  const { reason, message } = failure;
  const before = status ?? autoscaler.status ?? { desiredReplicas: 0 };
  const what = reason === 'FailedGetScale' ? "get the target's current scale" : 'update the target scale';
  const text = `the HPA controller was unable to ${what}: ${message}`;
  const conditions = withCondition(
    before.conditions ?? [],
    { type: 'AbleToScale', status: 'False', reason, message: text },
    timestamp(nowMs),
  );
  return { ...before, conditions };
}

export function ableToScale(status: HorizontalPodAutoscalerStatus, nowMs: number): HorizontalPodAutoscalerStatus {
  const text = `the HPA controller was able to update the target scale to ${status.desiredReplicas}`;
  const conditions = withCondition(
    status.conditions ?? [],
    { type: 'AbleToScale', status: 'True', reason: 'SucceededRescale', message: text },
    timestamp(nowMs),
  );
  return { ...status, conditions };
}
