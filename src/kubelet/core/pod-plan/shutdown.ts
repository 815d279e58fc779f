/**
 * Order in which pods are stopped when their node shuts down. Source: KEP-2000, KEP-2712;
 * pkg/kubelet/nodeshutdown/nodeshutdown_manager.go.
 */
import type { Pod } from '../../../api/generated/core/v1.ts';

export interface ShutdownPeriod {
  /** Lowest priority of the pods in this period. */
  readonly priority: number;
  readonly seconds: number;
}

export interface ShutdownGroup extends ShutdownPeriod {
  readonly pods: readonly Pod[];
}

/** Source: pkg/apis/scheduling SystemCriticalPriority. */
const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;

/** Converts `shutdownGracePeriod` and `shutdownGracePeriodCriticalPods` to periods by priority. */
export function periodsOf(totalSeconds: number, criticalSeconds: number): readonly ShutdownPeriod[] {
  if (totalSeconds === 0) return [];
  return [
    { priority: 0, seconds: totalSeconds - criticalSeconds },
    { priority: SYSTEM_CRITICAL_PRIORITY, seconds: criticalSeconds },
  ];
}

/**
 * Pods by period in the order of shutdown, lowest priority first. A pod below the lowest priority belongs to the first
 * group. A period without pods has an empty group.
 */
export function shutdownGroups(periods: readonly ShutdownPeriod[], pods: readonly Pod[]): readonly ShutdownGroup[] {
  const sorted = [...periods].sort((left, right) => left.priority - right.priority);
  const groupOf = ({ spec }: Pod): number =>
    Math.max(
      0,
      sorted.findLastIndex(({ priority }) => priority <= (spec?.priority ?? 0)),
    );
  return sorted.map((period, index) => ({ ...period, pods: pods.filter((pod) => groupOf(pod) === index) }));
}

/** The pod's own grace period, limited by that of the group. */
export function shutdownGraceSeconds(pod: Pod, group: ShutdownPeriod): number {
  return Math.min(group.seconds, Number(pod.spec?.terminationGracePeriodSeconds ?? 30));
}
