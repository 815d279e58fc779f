/**
 * Deletion of a namespace: its conditions while its content is being deleted, and when it can be finalized. Source:
 * upstream's namespace deletion.
 */

import type { NamespaceCondition } from '../../../api/generated/core/v1.ts';
import { transitionTime } from '../../../api/meta/conditions.ts';
import { timestamp } from '../../../base/time/timestamps.ts';

/** Result of one pass over all namespaced kinds. */
export interface SweepResult {
  /** Groups whose discovery failed. */
  readonly discoveryErrors: readonly string[];
  readonly deletionErrors: readonly string[];
  /** Number of remaining objects by `plural.group`. */
  readonly remaining: ReadonlyMap<string, number>;
  /** Number of remaining objects by finalizer. */
  readonly finalizers: ReadonlyMap<string, number>;
}

type ConditionType =
  | 'NamespaceDeletionDiscoveryFailure'
  | 'NamespaceDeletionGroupVersionParsingFailure'
  | 'NamespaceDeletionContentFailure'
  | 'NamespaceContentRemaining'
  | 'NamespaceFinalizersRemaining';

interface Wanted {
  readonly type: ConditionType;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

export function planNamespaceConditions(
  existing: readonly NamespaceCondition[],
  sweep: SweepResult,
  nowMs: number,
): NamespaceCondition[] {
  return wantedConditions(sweep).map((wanted) => {
    const old = existing.find((condition) => condition.type === wanted.type);
    return { ...wanted, lastTransitionTime: transitionTime(old, wanted.status, timestamp(nowMs)) };
  });
}

function wantedConditions(sweep: SweepResult): Wanted[] {
  const list = (texts: readonly string[]): string => texts.slice(0, 5).join(', ');
  const counted = (counts: ReadonlyMap<string, number>): string =>
    [...counts]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, count]) => `${name} in ${count} resource instances`)
      .join(', ');
  const remaining = [...sweep.remaining]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, count]) => `${name} has ${count} resource instances`)
    .join(', ');
  return [
    sweep.discoveryErrors.length === 0
      ? condition(
          'NamespaceDeletionDiscoveryFailure',
          'False',
          'ResourcesDiscovered',
          'All resources successfully discovered',
        )
      : condition(
          'NamespaceDeletionDiscoveryFailure',
          'True',
          'DiscoveryFailed',
          `Discovery failed for some groups, ${sweep.discoveryErrors.length} failing: ${list(sweep.discoveryErrors)}`,
        ),
    condition(
      'NamespaceDeletionGroupVersionParsingFailure',
      'False',
      'ParsedGroupVersions',
      'All legacy kube types successfully parsed',
    ),
    sweep.deletionErrors.length === 0
      ? condition(
          'NamespaceDeletionContentFailure',
          'False',
          'ContentDeleted',
          'All content successfully deleted, may be waiting on finalization',
        )
      : condition(
          'NamespaceDeletionContentFailure',
          'True',
          'ContentDeletionFailed',
          `Failed to delete all resource types, ${sweep.deletionErrors.length} remaining: ${list(sweep.deletionErrors)}`,
        ),
    sweep.remaining.size === 0
      ? condition('NamespaceContentRemaining', 'False', 'ContentRemoved', 'All content successfully removed')
      : condition(
          'NamespaceContentRemaining',
          'True',
          'SomeResourcesRemain',
          `Some resources are remaining: ${remaining}`,
        ),
    sweep.finalizers.size === 0
      ? condition(
          'NamespaceFinalizersRemaining',
          'False',
          'ContentHasNoFinalizers',
          'All content-preserving finalizers finished',
        )
      : condition(
          'NamespaceFinalizersRemaining',
          'True',
          'SomeFinalizersRemain',
          `Some content in the namespace has finalizers remaining: ${counted(sweep.finalizers)}`,
        ),
  ];
}

function condition(type: ConditionType, status: 'True' | 'False', reason: string, message: string): Wanted {
  return { type, status, reason, message };
}

export function conditionsDiffer(a: readonly NamespaceCondition[], b: readonly NamespaceCondition[]): boolean {
  const text = (conditions: readonly NamespaceCondition[]): string =>
    JSON.stringify(conditions.map((each) => [each.type, each.status, each.reason, each.message]).sort());
  return text(a) !== text(b);
}

/** The finalizer that this controller removes. */
export const KUBERNETES_FINALIZER = 'kubernetes';

export function isFinished(sweep: SweepResult): boolean {
  return sweep.discoveryErrors.length === 0 && sweep.deletionErrors.length === 0 && sweep.remaining.size === 0;
}
