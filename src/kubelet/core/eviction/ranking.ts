/**
 * Order in which pods are evicted. Source: pkg/kubelet/eviction/helpers.go rankMemoryPressure, rankDiskPressureFunc,
 * rankPIDPressure.
 */
import type { Uid } from '../../../base/brand.ts';
import type { EvictionResource } from './thresholds.ts';

/** Amounts are bytes for `memory` and `ephemeral-storage`, and numbers for `inodes` and `pids`. */
export interface Candidate {
  readonly uid: Uid;
  readonly priority: number;
  /** Static and critical pods are never evicted. */
  readonly critical: boolean;
  /** Requested amount; 0 for inodes and pids. */
  readonly requested: number;
  /** Undefined if not measured. */
  readonly used: number | undefined;
}

/**
 * Order of eviction: pods that were not measured, then pods that exceed their request, then lower priority, then the
 * largest excess over the request. For pids only priority and usage count.
 */
export function rankCandidates(resource: EvictionResource, candidates: readonly Candidate[]): readonly Candidate[] {
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
