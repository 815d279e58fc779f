/**
 * Requests and decisions. Authorizers of this room are pure: they hold a model of roles or pods that the caller keeps
 * up to date from its caches, and answer from it without asking anybody.
 */
import type { UserInfo } from '../../api/registry/definition.ts';

export type { UserInfo };

/**
 * A request for a resource. Empty strings where a part is absent, as in `SubjectAccessReview.spec.resourceAttributes`.
 */
export interface ResourceAction {
  readonly verb: string;
  /** '' for the core group. */
  readonly group: string;
  /** Lower-case plural. */
  readonly resource: string;
  readonly subresource: string;
  /** '' for cluster-scoped resources and for requests across all namespaces. */
  readonly namespace: string;
  /** Name of the object; for list and watch the one name that a `metadata.name` field selector pins down. */
  readonly name: string;
  /** Absent: any. */
  readonly version?: string;
  /**
   * What a list's, a watch's or a deletecollection's selectors demand. Terms that cannot be understood are left out:
   * that asks for more.
   */
  readonly fields?: readonly SelectorTerm[];
  readonly labels?: readonly SelectorTerm[];
}

/** As in `SubjectAccessReview.spec.resourceAttributes.fieldSelector.requirements`. */
export interface SelectorTerm {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values: readonly string[];
}

/** Whether only objects are asked for whose field has that value. */
export function pinsField({ fields }: ResourceAction, key: string, value: string): boolean {
  return fields?.some((term) => term.key === key && term.operator === 'In' && term.values[0] === value) === true;
}

/** A request for something that is not a resource: `/healthz`, `/apis`. */
export interface PathAction {
  /** Lower-case HTTP method. */
  readonly verb: string;
  readonly path: string;
}

export type Action = ResourceAction | PathAction;

export interface Decision {
  readonly allowed: boolean;
  /** Why; may be empty. For audit annotations and for the tail of a 403's message. */
  readonly reason: string;
  /** An authorizer denied the request, and no further authorizer is consulted. */
  readonly denied?: boolean;
  /** What kept somebody from saying anything. */
  readonly error?: string;
}

export function isPathAction(action: Action): action is PathAction {
  return 'path' in action;
}

/** The group that passes everything. Source: k8s.io/apiserver user.SystemPrivilegedGroup. */
export const PRIVILEGED_GROUP = 'system:masters';

/** `pods` or `pods/log`. */
export function resourceWithSubresource(action: ResourceAction): string {
  return action.subresource === '' ? action.resource : `${action.resource}/${action.subresource}`;
}

/**
 * What a 403 says after the subject, worded as upstream's: `User "a" cannot list resource "pods" in API group "" in the
 * namespace "b"`.
 */
export function describeDenial(user: UserInfo, action: Action): string {
  const who = `User ${JSON.stringify(user.name)}`;
  if (isPathAction(action)) return `${who} cannot ${action.verb} path ${JSON.stringify(action.path)}`;
  const what = `${who} cannot ${action.verb} resource ${JSON.stringify(resourceWithSubresource(action))} in API group ${JSON.stringify(action.group)}`;
  return action.namespace === ''
    ? `${what} at the cluster scope`
    : `${what} in the namespace ${JSON.stringify(action.namespace)}`;
}
