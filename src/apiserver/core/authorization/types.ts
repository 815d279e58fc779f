/**
 * Actions and decisions. The authorizers of this folder are pure: they hold a model of roles or pods, which the caller
 * keeps up to date from its caches.
 */
import type { UserInfo } from '../../../api/registry/definition.ts';

export type { UserInfo };

/** A resource request. Absent parts are empty strings, as in `SubjectAccessReview.spec.resourceAttributes`. */
export interface ResourceAction {
  readonly verb: string;
  /** API group. '' for the core group. */
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  /** Namespace of the request. '' for cluster-scoped resources and for requests across all namespaces. */
  readonly namespace: string;
  /** Name of the object; for list and watch the name in a `metadata.name` field selector. */
  readonly name: string;
  /** API version. Absent: any version. */
  readonly version?: string;
  /**
   * Selector requirements of a list, watch or deletecollection. Requirements that cannot be parsed are omitted, so that
   * the request covers more objects.
   */
  readonly fields?: readonly SelectorTerm[];
  readonly labels?: readonly SelectorTerm[];
}

/**
 * Requirement of a selector, with the fields of
 * `SubjectAccessReview.spec.resourceAttributes.fieldSelector.requirements`.
 */
export interface SelectorTerm {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values: readonly string[];
}

/** Reports whether the field selector requires that value. */
export function pinsField({ fields }: ResourceAction, key: string, value: string): boolean {
  return fields?.some((term) => term.key === key && term.operator === 'In' && term.values[0] === value) === true;
}

/** A non-resource request, for example `/healthz` or `/apis`. */
export interface PathAction {
  /** Lower-case HTTP method. */
  readonly verb: string;
  readonly path: string;
}

export type Action = ResourceAction | PathAction;

export interface Decision {
  readonly allowed: boolean;
  /** Reason for the decision, possibly empty, for audit annotations and the message of a 403 response. */
  readonly reason: string;
  /** True: the request is denied, and no further authorizer is called. */
  readonly denied?: boolean;
  /** Error that prevented the authorizer from deciding. */
  readonly error?: string;
}

export function isPathAction(action: Action): action is PathAction {
  return 'path' in action;
}

/** Group with all permissions. Source: k8s.io/apiserver user.SystemPrivilegedGroup. */
export const PRIVILEGED_GROUP = 'system:masters';

/** Text such as `pods` or `pods/log`. */
export function resourceWithSubresource(action: ResourceAction): string {
  return action.subresource === '' ? action.resource : `${action.resource}/${action.subresource}`;
}

/**
 * Message of a denial in upstream's wording: `User "a" cannot list resource "pods" in API group "" in the namespace
 * "b"`.
 */
export function describeDenial(user: UserInfo, action: Action): string {
  const who = `User ${JSON.stringify(user.name)}`;
  if (isPathAction(action)) return `${who} cannot ${action.verb} path ${JSON.stringify(action.path)}`;
  const what = `${who} cannot ${action.verb} resource ${JSON.stringify(resourceWithSubresource(action))} in API group ${JSON.stringify(action.group)}`;
  return action.namespace === ''
    ? `${what} at the cluster scope`
    : `${what} in the namespace ${JSON.stringify(action.namespace)}`;
}
