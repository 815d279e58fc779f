/**
 * Which pod is evicted first. Source: pkg/kubelet/eviction/helpers.go rankMemoryPressure, rankDiskPressureFunc,
 * rankPIDPressure.
 */
import type { EvictionResource } from './thresholds.ts';

/** Of `memory` and `ephemeral-storage` bytes; of `inodes` and `pids` their number. */
export interface Candidate {
  readonly uid: string;
  readonly priority: number;
  /** Static and critical pods are never evicted. */
  readonly critical: boolean;
  /** What it requests of the resource; 0 for inodes and pids. */
  readonly requested: number;
  /** Undefined: not measured. */
  readonly used: number | undefined;
}

/**
 * The order of eviction. Pods that were not measured come first, then those that use more than they request, then those
 * of lower priority, then those that use most beyond their request. For pids only priority and use count.
 */
export function rank(resource: EvictionResource, candidates: readonly Candidate[]): readonly Candidate[] {
  return candidates
    .filter(({ critical }) => !critical)
    .toSorted(
      (left, right) =>
        first(left.used === undefined, right.used === undefined) ||
        (resource === 'pids' ? 0 : first(exceeds(left), exceeds(right))) ||
        left.priority - right.priority ||
        beyond(right) - beyond(left),
    );
}

const first = (left: boolean, right: boolean): number => Number(right) - Number(left);
const exceeds = ({ used, requested }: Candidate): boolean => (used ?? 0) > requested;
const beyond = ({ used, requested }: Candidate): number => (used ?? 0) - requested;
