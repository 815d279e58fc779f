/**
 * Prevents users from granting permissions that they do not have. Checked on every write of roles and bindings,
 * including patches and applies. Source:
 * k8s.io/kubernetes/pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased.
 */
import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
  RoleRef,
} from '../../../api/generated/rbac/v1.ts';
import type { RbacAuthorizer } from './rbac.ts';
import { coversRules } from './rules.ts';
import { type Action, PRIVILEGED_GROUP, type UserInfo } from './types.ts';

const GROUP = 'rbac.authorization.k8s.io';

const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];

export interface EscalationContext {
  readonly rbac: RbacAuthorizer;
  readonly user: UserInfo;
  /** Decides whether the user has the verbs `escalate` and `bind`. May call the whole chain of authorizers. */
  allows(action: Action): boolean;
}

/** The reason why `user` must not write this role; undefined if it may. `old` is the stored role on updates. */
export function roleEscalation(
  context: EscalationContext,
  role: Role | ClusterRole,
  old?: Role | ClusterRole,
): string | undefined {
  if (isPrivileged(context.user)) return undefined;
  if (old !== undefined && onlyOwnershipChanges(role, old)) return undefined;
  const namespace = role.metadata?.namespace ?? '';
  const resource = namespace === '' ? 'clusterroles' : 'roles';
  const action = rbacAction('escalate', resource, namespace, role.metadata?.name ?? '');
  if (context.allows(action)) return undefined;
  const missing = missingRules(context, namespace, role.rules ?? []);
  if (missing !== undefined) return missing;
  if (namespace === '' && aggregates(role)) {
    const notAll = missingRules(context, '', EVERYTHING);
    if (notAll !== undefined) return 'must have cluster-admin privileges to use the aggregationRule';
  }
  return undefined;
}

/** The reason why `user` must not write this binding; undefined if it may. */
export function bindingEscalation(
  context: EscalationContext,
  binding: RoleBinding | ClusterRoleBinding,
  old?: RoleBinding | ClusterRoleBinding,
): string | undefined {
  if (isPrivileged(context.user)) return undefined;
  if (old !== undefined && onlyOwnershipChanges(binding, old)) return undefined;
  const namespace = binding.metadata?.namespace ?? '';
  if (context.allows(bindAction(binding.roleRef, namespace))) return undefined;
  const rules = context.rbac.rulesOf(binding.roleRef, namespace);
  if (rules === undefined) {
    const { kind, name } = binding.roleRef;
    return `${kind.toLowerCase()}s.${GROUP} ${JSON.stringify(name)} not found`;
  }
  return missingRules(context, namespace, rules);
}

function missingRules(
  context: EscalationContext,
  namespace: string,
  wanted: readonly PolicyRule[],
): string | undefined {
  const own = context.rbac.rulesFor(context.user, namespace);
  const { covered, uncovered } = coversRules([...own.resourceRules, ...own.nonResourceRules], wanted);
  if (covered) return undefined;
  const groups = context.user.groups.map((group) => JSON.stringify(group)).join(' ');
  const errors = own.errors.length === 0 ? '' : `; resolution errors: [${own.errors.join(', ')}]`;
  return `user ${JSON.stringify(context.user.name)} (groups=[${groups}]) is attempting to grant RBAC permissions not currently held:\n${uncovered.map(describeRule).join('\n')}${errors}`;
}

function describeRule(rule: PolicyRule): string {
  const parts = [
    ['APIGroups', rule.apiGroups],
    ['Resources', rule.resources],
    ['ResourceNames', rule.resourceNames],
    ['NonResourceURLs', rule.nonResourceURLs],
    ['Verbs', rule.verbs],
  ] as const;
  const shown = parts.filter(([, values]) => (values ?? []).length > 0);
  return `{${shown.map(([name, values]) => `${name}:${JSON.stringify(values)}`).join(', ')}}`;
}

function isPrivileged(user: UserInfo): boolean {
  return user.groups.includes(PRIVILEGED_GROUP);
}

function aggregates(role: Role | ClusterRole): boolean {
  return 'aggregationRule' in role && role.aggregationRule !== undefined && role.aggregationRule !== null;
}

function bindAction(ref: RoleRef, namespace: string): Action {
  return rbacAction('bind', ref.kind === 'Role' ? 'roles' : 'clusterroles', namespace, ref.name);
}

function rbacAction(verb: string, resource: string, namespace: string, name: string): Action {
  return { verb, group: GROUP, resource, subresource: '', namespace, name };
}

/**
 * Reports whether only owner references and finalizers change, which the garbage collector does without the role's
 * permissions.
 */
function onlyOwnershipChanges(
  object: Role | ClusterRole | RoleBinding | ClusterRoleBinding,
  old: typeof object,
): boolean {
  return withoutOwnership(object) === withoutOwnership(old);
}

function withoutOwnership(object: Role | ClusterRole | RoleBinding | ClusterRoleBinding): string {
  const {
    ownerReferences: _owners,
    finalizers: _finalizers,
    managedFields: _managed,
    ...metadata
  } = object.metadata ?? {};
  return JSON.stringify({ ...object, metadata }, sortedKeys);
}

function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
