/** Revisions of a daemon set. Source: upstream's daemon/update.go. */
import type { ControllerRevision, DaemonSet } from '../../../api/generated/apps/v1.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { hasTemplate, obsoleteRevisions, planRevision } from '../../framework/core/controller-revisions.ts';
import { REVISION_HASH } from './pod.ts';

export interface HistoryPlan {
  /** Value of the hash label that pods of the current template have. */
  readonly hash: string;
  readonly create: ControllerRevision | undefined;
  /** Revision to update, because the current template was used before: it gets the highest number. */
  readonly update: ControllerRevision | undefined;
  readonly delete: readonly ControllerRevision[];
}

export function planHistory(
  set: DaemonSet,
  revisions: readonly ControllerRevision[],
  pods: readonly Pod[],
): HistoryPlan {
  const { latest, old, change } = planRevision(
    {
      object: set,
      gvk: { group: 'apps', version: 'v1', kind: 'DaemonSet' },
      template: set.spec?.template,
      collisionCount: set.status?.collisionCount,
      hashLabel: REVISION_HASH,
    },
    revisions,
  );
  const running = new Set(pods.map((pod) => pod.metadata?.labels?.[REVISION_HASH]));
  return {
    hash: latest.metadata?.labels?.[REVISION_HASH] ?? '',
    create: change === 'create' ? latest : undefined,
    update: change === 'update' ? latest : undefined,
    delete: obsoleteRevisions(old, set.spec?.revisionHistoryLimit ?? 10, (revision) =>
      running.has(revision.metadata?.labels?.[REVISION_HASH]),
    ),
  };
}

export function hasSameTemplate(revision: ControllerRevision, set: DaemonSet): boolean {
  return hasTemplate(revision, set.spec?.template);
}
