/** Revisions of a stateful set: the current one and the one to which it is updated. Source: stateful_set_control.go. */
import type { ControllerRevision, StatefulSet } from '../../../api/generated/apps/v1.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { hasTemplate, obsoleteRevisions, planRevision } from '../../framework/core/controller-revisions.ts';
import { REVISION_LABEL, STATEFUL_SET } from './pod.ts';

const HASH_LABEL = 'controller.kubernetes.io/hash';

export interface StatefulHistory {
  /** Last revision that was rolled out completely; equal to `update` if there is none. */
  readonly current: ControllerRevision;
  readonly update: ControllerRevision;
  /** Write of `update` that is required before the revision is used. */
  readonly change: 'create' | 'update' | undefined;
  readonly delete: readonly ControllerRevision[];
}

export function planStatefulHistory(
  set: StatefulSet,
  revisions: readonly ControllerRevision[],
  pods: readonly Pod[],
): StatefulHistory {
  const { latest, old, change } = planRevision(
    {
      object: set,
      gvk: STATEFUL_SET,
      template: set.spec?.template,
      collisionCount: set.status?.collisionCount,
      hashLabel: HASH_LABEL,
    },
    revisions,
  );
  const current = old.find((revision) => revision.metadata?.name === set.status?.currentRevision) ?? latest;
  const live = new Set([...pods.map((pod) => pod.metadata?.labels?.[REVISION_LABEL]), current.metadata?.name]);
  const obsolete = obsoleteRevisions(
    old.filter((revision) => !live.has(revision.metadata?.name)),
    set.spec?.revisionHistoryLimit ?? 10,
    () => false,
  );
  return { current, update: latest, change, delete: obsolete };
}

export function isRevisionOf(revision: ControllerRevision, set: StatefulSet): boolean {
  return hasTemplate(revision, set.spec?.template);
}
