/**
 * Revisions of a daemon set, kept as ControllerRevisions so that `kubectl rollout undo` can go back. Source: upstream's
 * daemon/update.go.
 */
import type { ControllerRevision, DaemonSet } from 'kubernetes-types/apps/v1';
import type { Pod } from 'kubernetes-types/core/v1';
import { timeMs } from '../context.ts';
import { semanticEqual } from '../equality.ts';
import { templateHash } from '../hash.ts';
import { controllerReference } from '../ownership.ts';
import { REVISION_HASH } from './pod.ts';

export interface HistoryPlan {
  /** The hash that pods of the current template carry. */
  readonly hash: string;
  readonly create: ControllerRevision | undefined;
  /** The current template was used before: its revision becomes the newest. */
  readonly update: ControllerRevision | undefined;
  readonly delete: readonly ControllerRevision[];
}

export function planHistory(
  set: DaemonSet,
  revisions: readonly ControllerRevision[],
  pods: readonly Pod[],
): HistoryPlan {
  const data = revisionData(set);
  const sorted = [...revisions].sort(byRevision);
  const newest = Number(sorted.at(-1)?.revision ?? 0);
  const current = sorted.findLast((revision) => semanticEqual(revision.data, data));
  if (current === undefined) {
    const created = newRevision(set, data, newest + 1);
    return {
      hash: created.metadata?.labels?.[REVISION_HASH] ?? '',
      create: created,
      update: undefined,
      delete: obsolete(set, sorted, pods),
    };
  }
  const old = sorted.filter((revision) => revision !== current);
  const isNewest = old.every((revision) => revision.revision < current.revision);
  return {
    hash: current.metadata?.labels?.[REVISION_HASH] ?? '',
    create: undefined,
    update: isNewest ? undefined : { ...current, revision: newest + 1 },
    delete: obsolete(set, old, pods),
  };
}

/** A strategic merge patch that restores the template: what kubectl sends back on an undo. */
function revisionData(set: DaemonSet): { spec: { template: object } } {
  return { spec: { template: { ...set.spec?.template, $patch: 'replace' } } };
}

function newRevision(set: DaemonSet, data: object, revision: number): ControllerRevision {
  const hash = templateHash(set.spec?.template, set.status?.collisionCount);
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: `${set.metadata?.name ?? ''}-${hash}`,
      namespace: set.metadata?.namespace ?? '',
      labels: { ...set.spec?.template.metadata?.labels, [REVISION_HASH]: hash },
      ...(set.metadata?.annotations === undefined ? {} : { annotations: { ...set.metadata.annotations } }),
      ownerReferences: [controllerReference(set, { group: 'apps', version: 'v1', kind: 'DaemonSet' })],
    },
    data: data as NonNullable<ControllerRevision['data']>,
    revision,
  };
}

/** The oldest beyond the limit, none that a pod still runs. */
function obsolete(set: DaemonSet, old: readonly ControllerRevision[], pods: readonly Pod[]): ControllerRevision[] {
  const limit = set.spec?.revisionHistoryLimit ?? 10;
  const surplus = old.length - limit;
  if (surplus <= 0) return [];
  const running = new Set(pods.map((pod) => pod.metadata?.labels?.[REVISION_HASH]));
  return old.filter((revision) => !running.has(revision.metadata?.labels?.[REVISION_HASH])).slice(0, surplus);
}

export function hasSameTemplate(revision: ControllerRevision, set: DaemonSet): boolean {
  return semanticEqual(revision.data, revisionData(set));
}

function byRevision(a: ControllerRevision, b: ControllerRevision): number {
  return (
    (a.revision < b.revision ? -1 : a.revision > b.revision ? 1 : 0) ||
    timeMs(a.metadata?.creationTimestamp) - timeMs(b.metadata?.creationTimestamp) ||
    ((a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1)
  );
}
