/**
 * Roll-outs: progress by revision, former revisions, and the return to a former revision. Source:
 * k8s.io/kubectl/pkg/polymorphichelpers.
 */
import type { Deployment, ReplicaSet } from '../../../api/generated/apps/v1.ts';
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { collectionPath, objectPath, query } from '../../../client/resource-path.ts';
import { type Api, MERGE_PATCH } from '../api/api.ts';
import { FIELD_MANAGER } from '../api/apply.ts';
import { type AnyObject, DEPLOYMENTS, fieldAt, listAt, numberAt, REPLICA_SETS, textAt } from '../api/resources.ts';
import { podSelectorOf } from './workloads.ts';

const REVISION = 'deployment.kubernetes.io/revision';
const HASH = 'pod-template-hash';
const own = query({ fieldManager: FIELD_MANAGER });

export const CONTROLLER_REVISIONS: ResourceType<AnyObject> = {
  group: 'apps',
  version: 'v1',
  kind: 'ControllerRevision',
  plural: 'controllerrevisions',
  namespaced: true,
};

export interface Revision {
  readonly number: number;
  readonly name: string;
  readonly images: readonly string[];
  readonly created: string;
  readonly isCurrent: boolean;
  /** Pod template without the fields that the controller adds. */
  readonly template: unknown;
}

const imagesIn = (template: unknown): readonly string[] =>
  listAt(template, 'spec', 'containers').map((each) => textAt(each, 'image'));

const isOwnedBy = ({ metadata }: KubeObject, owner: KubeObject): boolean =>
  owner.metadata?.uid !== undefined &&
  metadata?.ownerReferences?.some(({ uid }) => uid === owner.metadata?.uid) === true;

const revisionNumber = (object: KubeObject): number => Number(object.metadata?.annotations?.[REVISION] ?? 0);

/** Revisions of a deployment, newest first. */
export function revisionsOf(deployment: Deployment, sets: readonly ReplicaSet[]): readonly Revision[] {
  const current = revisionNumber(deployment);
  return sets
    .filter((set) => isOwnedBy(set, deployment))
    .map((set) => {
      const template = structuredClone(set.spec?.template) as { metadata?: { labels?: Record<string, string> } };
      delete template?.metadata?.labels?.[HASH];
      return {
        number: revisionNumber(set),
        name: set.metadata?.name ?? '',
        images: imagesIn(template),
        created: set.metadata?.creationTimestamp ?? '',
        isCurrent: revisionNumber(set) === current,
        template,
      };
    })
    .sort((a, b) => b.number - a.number);
}

/** Revisions of a stateful set or daemon set, newest first. The newest revision is the current one. */
export function controllerRevisionsOf(owner: KubeObject, revisions: readonly AnyObject[]): readonly Revision[] {
  return revisions
    .filter((each) => isOwnedBy(each, owner))
    .toSorted((a, b) => numberAt(b, 0, 'revision') - numberAt(a, 0, 'revision'))
    .map((each, index) => {
      const { $patch: _patch, ...template } = (fieldAt(each, 'data', 'spec', 'template') ?? {}) as Record<
        string,
        unknown
      >;
      return {
        number: numberAt(each, 0, 'revision'),
        name: each.metadata?.name ?? '',
        images: imagesIn(template),
        created: each.metadata?.creationTimestamp ?? '',
        isCurrent: index === 0,
        template,
      };
    });
}

export async function readRevisions(api: Api, type: ResourceType, object: KubeObject): Promise<readonly Revision[]> {
  const source = type.plural === 'deployments' ? REPLICA_SETS : CONTROLLER_REVISIONS;
  const path =
    collectionPath(source, object.metadata?.namespace) + query({ labelSelector: podSelectorOf(object), limit: 500 });
  const { items = [] } = await api.json<{ readonly items?: readonly AnyObject[] }>(path);
  return type.plural === 'deployments'
    ? revisionsOf(object as Deployment, items as readonly ReplicaSet[])
    : controllerRevisionsOf(object, items);
}

/** Makes the pod template of a former revision the current one, as `kubectl rollout undo` does. */
export async function rollBack(api: Api, type: ResourceType, object: KubeObject, revision: Revision): Promise<void> {
  const { name = '', namespace, generation } = object.metadata ?? {};
  await api.json(objectPath(type, name, namespace) + own, {
    method: 'PATCH',
    contentType: 'application/json-patch+json',
    body: [
      // The generation is compared instead of the resourceVersion, because the status changes often, for example while
      // pods fail repeatedly.
      { op: 'test', path: '/metadata/generation', value: generation },
      { op: 'replace', path: '/spec/template', value: revision.template },
    ],
  });
}

/** Pauses or continues the roll-out of a deployment. */
export async function setPaused(api: Api, name: string, namespace: string, paused: boolean): Promise<void> {
  await api.json(objectPath(DEPLOYMENTS, name, namespace) + own, {
    method: 'PATCH',
    contentType: MERGE_PATCH,
    body: { spec: { paused } },
  });
}

export interface RolloutStep {
  readonly label: string;
  readonly ready: number;
  readonly wanted: number;
}

/** Progress by revision, newest first. Old revisions without pods are omitted. */
export function rolloutSteps(object: KubeObject, sets: readonly ReplicaSet[]): readonly RolloutStep[] {
  if (object.kind === 'Deployment') {
    const current = revisionNumber(object);
    return sets
      .filter((set) => isOwnedBy(set, object))
      .toSorted((a, b) => revisionNumber(b) - revisionNumber(a))
      .filter((set) => revisionNumber(set) === current || numberAt(set, 0, 'status', 'replicas') > 0)
      .map((set) => {
        const isNew = revisionNumber(set) === current;
        return {
          label: `${isNew ? 'new' : 'old'} revision ${revisionNumber(set)}`,
          ready: numberAt(set, 0, 'status', 'readyReplicas'),
          wanted: isNew ? numberAt(object, 1, 'spec', 'replicas') : numberAt(set, 0, 'status', 'replicas'),
        };
      });
  }
  const desired =
    object.kind === 'DaemonSet'
      ? numberAt(object, 0, 'status', 'desiredNumberScheduled')
      : numberAt(object, 1, 'spec', 'replicas');
  const updated =
    object.kind === 'DaemonSet'
      ? numberAt(object, 0, 'status', 'updatedNumberScheduled')
      : numberAt(object, desired, 'status', 'updatedReplicas');
  return [{ label: 'pods of the new revision', ready: updated, wanted: desired }];
}
