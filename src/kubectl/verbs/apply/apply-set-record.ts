/** Labels and annotations of an ApplySet. Source: KEP-3659. */
import { sha256Base64url } from '../../../wire/digest.ts';
import type { AnyObject } from '../../core/objects.ts';
import { apiVersionOf, groupResource, type ResourceInfo } from '../../core/resources.ts';

export const ID_LABEL = 'applyset.kubernetes.io/id';
export const MEMBER_LABEL = 'applyset.kubernetes.io/part-of';
export const PARENT_TYPE_LABEL = 'applyset.kubernetes.io/is-parent-type';
export const TOOLING = 'applyset.kubernetes.io/tooling';
export const KINDS = 'applyset.kubernetes.io/contains-group-kinds';
export const ADDITIONAL_NAMESPACES = 'applyset.kubernetes.io/additional-namespaces';
/** Former annotation, which the annotation of kinds has replaced. It is read for sets of older clients. */
export const DEPRECATED_RESOURCES = 'applyset.kubernetes.io/contains-group-resources';

/** The object that records an ApplySet. */
export interface ApplySetParent {
  readonly resource: ResourceInfo;
  /** Namespace of the parent; undefined for a cluster-scoped parent. */
  readonly namespace: string | undefined;
  readonly name: string;
}

/** Kinds and namespaces that can contain members. */
export interface ApplySetScope {
  /** `Kind.group`, or `Kind` for the core group. */
  readonly kinds: ReadonlySet<string>;
  readonly namespaces: ReadonlySet<string>;
}

export const EMPTY_SCOPE: ApplySetScope = { kinds: new Set(), namespaces: new Set() };

/** Kind with its group, such as `Deployment.apps`; `Secret` for the core group. */
export const groupKind = ({ kind, group }: Pick<ResourceInfo, 'kind' | 'group'>): string =>
  group === '' ? kind : `${kind}.${group}`;

/** Name of a parent in messages, such as `configmaps./web`. */
export const parentName = ({ resource, name }: ApplySetParent): string => `${resource.name}.${resource.group}/${name}`;

/** Value of the labels that mark the parent and its members. */
export function applySetId({ resource, namespace = '', name }: ApplySetParent): string {
  const text = [name, namespace, resource.kind, resource.group].join('.');
  return `applyset-${sha256Base64url(text)}-v1`;
}

export const unionOf = (left: ApplySetScope, right: ApplySetScope): ApplySetScope => ({
  kinds: left.kinds.union(right.kinds),
  namespaces: left.namespaces.union(right.namespaces),
});

/** Kinds and namespaces of the objects in manifests. */
export const scopeOf = (
  placed: readonly { readonly resource: ResourceInfo; readonly namespace: string | undefined }[],
): ApplySetScope => ({
  kinds: new Set(placed.map(({ resource }) => groupKind(resource))),
  namespaces: new Set(placed.flatMap(({ namespace }) => (namespace === undefined ? [] : [namespace]))),
});

/** Body of the server-side apply that records the scope in the parent. */
export function parentPatch(parent: ApplySetParent, scope: ApplySetScope, tooling: string): AnyObject {
  const { resource, namespace, name } = parent;
  const others = [...scope.namespaces].filter((each) => each !== namespace);
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      annotations: {
        [TOOLING]: tooling,
        [KINDS]: [...scope.kinds].sort().join(','),
        [ADDITIONAL_NAMESPACES]: others.sort().join(','),
      },
      labels: { [ID_LABEL]: applySetId(parent) },
    },
  };
}

/** Resources of the kinds that the parent's annotations name. Names without a resource are passed to `onUnknown`. */
export function recordedResources(
  annotations: Readonly<Record<string, string>>,
  all: readonly ResourceInfo[],
  onUnknown: (annotation: string, text: string) => never,
): ResourceInfo[] | undefined {
  const kinds = annotations[KINDS];
  const annotation = kinds === undefined ? DEPRECATED_RESOURCES : KINDS;
  const text = kinds ?? annotations[DEPRECATED_RESOURCES];
  if (text === undefined || (kinds === undefined && text === '')) return undefined;
  const nameOf = kinds === undefined ? groupResource : groupKind;
  return text
    .split(',')
    .filter((each) => each !== '')
    .map((each) => all.find((resource) => nameOf(resource) === each) ?? onUnknown(annotation, each));
}
