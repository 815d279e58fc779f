/** Selects the revisions to keep. Source: library-go pkg/operator/staticpod/controller/prune. */

export const DEFAULT_KEPT = 5;

interface Kept {
  readonly revision: number;
  readonly isGood: boolean;
}

export interface KeepLimits {
  /** Number of failed revisions to keep. A negative number keeps all; the same holds for `succeeded`. */
  readonly failed: number;
  readonly succeeded: number;
}

/** Effective limit of an API field, in which 0 and undefined mean the default. */
export const keepLimit = (given: number | undefined): number =>
  given === undefined || given === 0 ? DEFAULT_KEPT : given;

/**
 * Numbers of the revisions to delete, in ascending order. Revisions in `used` are never deleted; callers pass the
 * current, target and newest ones.
 */
export function prunable(all: readonly Kept[], used: ReadonlySet<number>, limits: KeepLimits): number[] {
  const newestFirst = [...all].sort((left, right) => right.revision - left.revision);
  const left = { good: limits.succeeded, bad: limits.failed };
  const pruned: number[] = [];
  for (const { revision, isGood } of newestFirst) {
    const kind = isGood ? 'good' : 'bad';
    const isKept = left[kind] !== 0;
    if (left[kind] > 0) left[kind] -= 1;
    if (!isKept && !used.has(revision)) pruned.push(revision);
  }
  return pruned.reverse();
}
