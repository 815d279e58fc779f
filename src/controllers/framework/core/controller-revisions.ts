/**
 * Revisions of a pod template, kept as ControllerRevisions so that `kubectl rollout undo` can restore one. Shared by
 * daemon sets and stateful sets. Source: upstream's pkg/controller/history.
 */

import type { ControllerRevision } from '../../../api/generated/apps/v1.ts';
import type { PodTemplateSpec } from '../../../api/generated/core/v1.ts';
import type { JsonObject, KubeObject } from '../../../api/meta/object.ts';
import { decodeJson, fields, object, own } from '../../../base/decode.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import { equalIgnoringEmptyLists, jsonIgnoringEmptyLists } from './equality.ts';
import { controllerReference } from './ownership.ts';
import { templateHash } from './template-hash.ts';

export interface RevisionOwner {
  readonly object: KubeObject;
  readonly gvk: { readonly group: string; readonly version: string; readonly kind: string };
  readonly template: PodTemplateSpec | undefined;
  readonly collisionCount: number | undefined;
  /** Name of the revision's label that contains its hash. */
  readonly hashLabel: string;
}

export interface RevisionPlan {
  /** Revision of the current template. */
  readonly latest: ControllerRevision;
  /** All other revisions, oldest first. */
  readonly old: readonly ControllerRevision[];
  /**
   * `create`: `latest` does not exist yet. `update`: the template was used before, and its existing revision gets the
   * highest number.
   */
  readonly change: 'create' | 'update' | undefined;
}

export function planRevision(owner: RevisionOwner, revisions: readonly ControllerRevision[]): RevisionPlan {
  const data = revisionData(owner.template);
  const sorted = [...revisions].sort(byRevision);
  const newest = Number(sorted.at(-1)?.revision ?? 0);
  const current = sorted.findLast((revision) => equalIgnoringEmptyLists(revision.data, data));
  if (current === undefined) return { latest: newRevision(owner, data, newest + 1), old: sorted, change: 'create' };
  const old = sorted.filter((revision) => revision !== current);
  if (old.every((revision) => revision.revision < current.revision)) {
    return { latest: current, old, change: undefined };
  }
  return { latest: { ...current, revision: newest + 1 }, old, change: 'update' };
}

/**
 * Strategic merge patch that restores the template, which kubectl sends for an undo. Its keys are sorted as in Go,
 * because clients find the current revision by comparing bytes.
 */
function revisionData(template: PodTemplateSpec | undefined): JsonObject {
  return decodeJson(
    DATA,
    jsonIgnoringEmptyLists({ spec: { template: { ...template, $patch: 'replace' } } }),
    'revision',
  );
}

const DATA = own<JsonObject>(object({ spec: fields }));

function newRevision(owner: RevisionOwner, data: object, revision: number): ControllerRevision {
  const { name = '', namespace = '', annotations } = owner.object.metadata ?? {};
  const hash = templateHash(owner.template, owner.collisionCount);
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: `${name}-${hash}`,
      namespace,
      labels: { ...owner.template?.metadata?.labels, [owner.hashLabel]: hash },
      ...(annotations === undefined ? {} : { annotations: { ...annotations } }),
      ownerReferences: [controllerReference(owner.object, owner.gvk)],
    },
    data: data as NonNullable<ControllerRevision['data']>,
    revision,
  };
}

/** The oldest revisions beyond the limit that no pod uses. A negative limit keeps all revisions. */
export function obsoleteRevisions(
  old: readonly ControllerRevision[],
  limit: number,
  isLive: (revision: ControllerRevision) => boolean,
): ControllerRevision[] {
  const surplus = old.length - limit;
  if (limit < 0 || surplus <= 0) return [];
  return old.filter((revision) => !isLive(revision)).slice(0, surplus);
}

export function hasTemplate(revision: ControllerRevision, template: PodTemplateSpec | undefined): boolean {
  return equalIgnoringEmptyLists(revision.data, revisionData(template));
}

/** The template in a revision; undefined if its data has another format. */
export function templateOf(revision: ControllerRevision): PodTemplateSpec | undefined {
  const data = revision.data as { readonly spec?: { readonly template?: PodTemplateSpec & { $patch?: string } } };
  if (typeof data?.spec?.template !== 'object' || data.spec.template === null) return undefined;
  const { $patch: _, ...template } = data.spec.template;
  return template;
}

function byRevision(a: ControllerRevision, b: ControllerRevision): number {
  return (
    (a.revision < b.revision ? -1 : a.revision > b.revision ? 1 : 0) ||
    timeMs(a.metadata?.creationTimestamp) - timeMs(b.metadata?.creationTimestamp) ||
    ((a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1)
  );
}
