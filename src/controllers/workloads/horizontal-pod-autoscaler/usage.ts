/**
 * Number of replicas that a metric requires. Values are in thousandths of their unit. Source: upstream's podautoscaler
 * replica_calculator.go.
 */

import type { Pod } from '../../../api/generated/core/v1.ts';
import { quantityMilliValue, tryParseQuantity } from '../../../base/quantity.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import { isPodReady, podCondition } from '../../framework/core/pods.ts';

/**
 * Times after the start of a pod in which its CPU usage is ignored, because it is not representative. Upstream's
 * values.
 */
const CPU_INITIALIZATION_MS = 5 * 60_000;
const INITIAL_READINESS_MS = 30_000;

export interface PodMetric {
  readonly milli: number;
  readonly atMs: number;
  readonly windowMs: number;
}

export interface Tolerances {
  readonly up: number;
  readonly down: number;
}

export interface Proposal {
  readonly replicas: number;
  /** Usage per pod, or in total if the target is a value. */
  readonly usageMilli: number;
  /** Usage in percent of the pods' requests. */
  readonly utilization?: number;
}

const isWithin = (ratio: number, { up, down }: Tolerances): boolean => ratio <= 1 + up && ratio >= 1 - down;

export interface PodUsage {
  readonly replicas: number;
  readonly pods: readonly Pod[];
  readonly metrics: ReadonlyMap<string, PodMetric>;
  readonly isCpu: boolean;
  readonly tolerances: Tolerances;
  readonly nowMs: number;
}

/** Proposes replicas for an average value per pod. */
export function proposeByAverage(usage: PodUsage, targetMilli: number): Proposal {
  return propose(
    usage,
    (values) => {
      const mean = sum(values.values()) / values.size;
      return { ratio: mean / targetMilli, usageMilli: Math.floor(mean) };
    },
    () => targetMilli,
  );
}

/** Proposes replicas for a percentage of the pods' requests. Throws if a container has no request. */
export function proposeByUtilization(
  usage: PodUsage,
  targetPercent: number,
  resource: string,
  container: string | undefined,
): Proposal {
  const requests = new Map(usage.pods.map((pod) => [nameOf(pod), requestOf(pod, resource, container)]));
  const fallback = Math.max(100, targetPercent) / 100;
  return propose(
    usage,
    (values) => {
      const used = sum(values.values());
      const requested = sum([...values.keys()].map((name) => requests.get(name) ?? 0));
      if (requested === 0) throw new Error('no metrics returned matched known pods');
      const utilization = Math.trunc((used * 100) / requested);
      return { ratio: utilization / targetPercent, usageMilli: Math.floor(used / values.size), utilization };
    },
    (name) => (requests.get(name) ?? 0) * fallback,
  );
}

interface Measured {
  readonly ratio: number;
  readonly usageMilli: number;
  readonly utilization?: number;
}

/** @param fallback Assumed usage of a pod without metrics when the other pods require fewer replicas. */
function propose(
  usage: PodUsage,
  measure: (values: ReadonlyMap<string, number>) => Measured,
  fallback: (pod: string) => number,
): Proposal {
  const { replicas, tolerances } = usage;
  const { values, unready, missing } = group(usage);
  if (values.size === 0) throw new Error('did not receive metrics for targeted pods (pods might be unready)');
  const first = measure(values);
  const { ratio, ...shown } = first;
  const countsUnready = unready.length > 0 && ratio > 1;
  if (!countsUnready && missing.length === 0) {
    return { replicas: isWithin(ratio, tolerances) ? replicas : ceil(ratio * values.size), ...shown };
  }
  const assumed = new Map(values);
  for (const name of missing) {
    if (ratio < 1) assumed.set(name, fallback(name));
    else if (ratio > 1) assumed.set(name, 0);
  }
  if (countsUnready) for (const name of unready) assumed.set(name, 0);
  const next = measure(assumed).ratio;
  const turned = (ratio < 1 && next > 1) || (ratio > 1 && next < 1);
  if (isWithin(next, tolerances) || turned) return { replicas, ...shown };
  const proposed = ceil(next * assumed.size);
  const isContrary = (next < 1 && proposed > replicas) || (next > 1 && proposed < replicas);
  return { replicas: isContrary ? replicas : proposed, ...shown };
}

function group({ pods, metrics, isCpu, nowMs }: PodUsage): {
  readonly values: Map<string, number>;
  readonly unready: string[];
  readonly missing: string[];
} {
  const values = new Map<string, number>();
  const unready: string[] = [];
  const missing: string[] = [];
  for (const pod of pods) {
    if (pod.metadata?.deletionTimestamp !== undefined || pod.status?.phase === 'Failed') continue;
    const name = nameOf(pod);
    const metric = metrics.get(name);
    if (pod.status?.phase === 'Pending') unready.push(name);
    else if (metric === undefined) missing.push(name);
    else if (isCpu && isStarting(pod, metric, nowMs)) unready.push(name);
    else values.set(name, metric.milli);
  }
  return { values, unready, missing };
}

function isStarting(pod: Pod, metric: PodMetric, nowMs: number): boolean {
  const ready = podCondition(pod, 'Ready');
  const { startTime } = pod.status ?? {};
  if (ready === undefined || startTime === undefined) return true;
  const changed = timeMs(ready.lastTransitionTime);
  if (timeMs(startTime) + CPU_INITIALIZATION_MS > nowMs) {
    return ready.status === 'False' || metric.atMs < changed + metric.windowMs;
  }
  return ready.status === 'False' && timeMs(startTime) + INITIAL_READINESS_MS > changed;
}

/** Proposes replicas for a total value, shared by the ready pods. */
export function proposeByValue(
  usageMilli: number,
  targetMilli: number,
  replicas: number,
  pods: readonly Pod[],
  tolerances: Tolerances,
): Proposal {
  const ratio = usageMilli / targetMilli;
  if (replicas === 0) return { replicas: ceil(ratio), usageMilli };
  if (isWithin(ratio, tolerances)) return { replicas, usageMilli };
  const ready = pods.filter((pod) => pod.status?.phase === 'Running' && isPodReady(pod)).length;
  return { replicas: ceil(ratio * ready), usageMilli };
}

/** Proposes replicas for a value per replica of one shared metric. */
export function proposeByTotal(
  usageMilli: number,
  targetMilli: number,
  replicas: number,
  tolerances: Tolerances,
): Proposal {
  const ratio = replicas === 0 ? Number.POSITIVE_INFINITY : usageMilli / (targetMilli * replicas);
  const proposed = isWithin(ratio, tolerances) ? replicas : ceil(usageMilli / targetMilli);
  return { replicas: proposed, usageMilli: replicas === 0 ? usageMilli : Math.ceil(usageMilli / replicas) };
}

function requestOf(pod: Pod, resource: string, container: string | undefined): number {
  let total = 0;
  for (const each of pod.spec?.containers ?? []) {
    if (container !== undefined && each.name !== container) continue;
    const request = tryParseQuantity(each.resources?.requests?.[resource]);
    if (request === undefined) {
      throw new Error(`missing request for ${resource} in container ${each.name} of Pod ${nameOf(pod)}`);
    }
    total += quantityMilliValue(request);
  }
  return total;
}

const nameOf = (pod: Pod): string => pod.metadata?.name ?? '';
const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0);
const ceil = (value: number): number => Math.min(2 ** 31 - 1, Math.ceil(value));
