/** Rules that role bindings grant to a user, a group or a service account. */
import type { ClusterRole, PolicyRule, Role, Subject } from '../../../api/generated/rbac/v1.ts';
import type { Api } from './api.ts';
import type { RbacObjects } from './who-can.ts';

export interface Bearer {
  readonly kind: 'User' | 'Group' | 'ServiceAccount';
  /** Namespace of a service account; '' for users and groups. */
  readonly namespace: string;
  readonly name: string;
}

export interface Membership {
  readonly group: string;
  readonly users: readonly string[];
}

export interface Grant {
  /** Namespace of the grant; '' for the whole cluster. */
  readonly namespace: string;
  readonly verbs: string;
  /** Resources with their API groups and names, or URLs. */
  readonly target: string;
  readonly role: string;
  readonly binding: string;
  /** Subject of the binding: the bearer itself or one of its groups. */
  readonly through: string;
}

const RBAC = 'rbac.authorization.k8s.io';
const ACCOUNTS = 'system:serviceaccounts';

/** The names that authorization uses for the bearer. Source: upstream apiserver/pkg/authentication/serviceaccount. */
function namesOf({ kind, namespace, name }: Bearer, memberships: readonly Membership[]) {
  if (kind === 'Group') return { user: undefined, groups: new Set([name]) };
  const isAccount = kind === 'ServiceAccount';
  const user = isAccount ? `system:serviceaccount:${namespace}:${name}` : name;
  const own = memberships.filter(({ users }) => users.includes(user)).map(({ group }) => group);
  const implied =
    user === 'system:anonymous'
      ? ['system:unauthenticated']
      : ['system:authenticated', ...(isAccount ? [ACCOUNTS, `${ACCOUNTS}:${namespace}`] : [])];
  return { user, groups: new Set([...own, ...implied]) };
}

/** Lists the bearer's grants: those for the whole cluster first, then those of each namespace. */
export function whatCan(bearer: Bearer, objects: RbacObjects, memberships: readonly Membership[]): readonly Grant[] {
  const { user, groups } = namesOf(bearer, memberships);
  const isBearer = ({ kind, name, namespace }: Subject): boolean => {
    if (kind === 'ServiceAccount') return `system:serviceaccount:${namespace}:${name}` === user;
    return kind === 'Group' ? groups.has(name) : name === user;
  };
  const clusterRoles = new Map(objects.clusterRoles.map((role) => [role.metadata?.name, role]));
  const roles = new Map(objects.roles.map((role) => [keyOf(role.metadata?.namespace, role.metadata?.name), role]));
  const grants = [...objects.clusterRoleBindings, ...objects.roleBindings].flatMap((binding) => {
    const subject = binding.subjects?.find(isBearer);
    if (subject === undefined) return [];
    const { kind, name: role = '' } = binding.roleRef ?? {};
    const namespace = binding.metadata?.namespace ?? '';
    const rules: Role | ClusterRole | undefined =
      kind === 'Role' ? roles.get(keyOf(namespace, role)) : clusterRoles.get(role);
    return (rules?.rules ?? [])
      .filter((rule) => namespace === '' || (rule.nonResourceURLs ?? []).length === 0)
      .map(
        (rule): Grant => ({
          namespace,
          verbs: rule.verbs.join(', '),
          target: targetOf(rule),
          role,
          binding: binding.metadata?.name ?? '',
          through:
            subject.kind === bearer.kind && subject.name === bearer.name ? '' : `${subject.kind} ${subject.name}`,
        }),
      );
  });
  return grants.sort((a, b) => compare(a.namespace, b.namespace) || compare(a.target, b.target));
}

const keyOf = (namespace = '', name = ''): string => `${namespace}/${name}`;

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function targetOf({ apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] }: PolicyRule): string {
  if (nonResourceURLs.length > 0) return nonResourceURLs.join(', ');
  const all = resources.flatMap((resource) =>
    apiGroups.map((group) =>
      group === '' ? resource : resource === '*' && group === '*' ? 'everything' : `${resource}.${group}`,
    ),
  );
  return `${all.join(', ')}${resourceNames.length === 0 ? '' : ` with the name ${resourceNames.join(', ')}`}`;
}

/** Groups of users. Empty if this profile has no such kind or the user may not read it. */
export async function readMemberships(api: Api): Promise<readonly Membership[]> {
  interface Group {
    readonly metadata?: { readonly name?: string };
    readonly users?: readonly string[];
  }
  const list = await api
    .json<{ readonly items?: readonly Group[] }>('/apis/user.openshift.io/v1/groups')
    .catch(() => undefined);
  return (list?.items ?? []).map(({ metadata, users }) => ({ group: metadata?.name ?? '', users: users ?? [] }));
}

/** Permission that the user needs for the page. */
export const READ_BINDINGS = { verb: 'list', group: RBAC, resource: 'clusterrolebindings' };
