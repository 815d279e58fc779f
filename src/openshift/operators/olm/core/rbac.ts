/**
 * Service accounts and RBAC objects that an operator version needs. Source: operator-lifecycle-manager
 * pkg/controller/registry/resolver/rbac.go and pkg/controller/operators/olm/operatorgroup.go.
 */
import type { ServiceAccount } from '../../../../api/generated/core/v1.ts';
import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
  Subject,
} from '../../../../api/generated/rbac/v1.ts';
import type { ClusterServiceVersion, CrdDescription, StrategyPermissions } from '../kinds/types.ts';
import { labelValue, nameWithDigest, ownerLabels } from './names.ts';

const API_VERSION = 'rbac.authorization.k8s.io/v1';
const GROUP = 'rbac.authorization.k8s.io';

const permissionsOf = (
  csv: ClusterServiceVersion,
  scope: 'permissions' | 'clusterPermissions',
): StrategyPermissions[] => csv.spec?.install?.spec?.[scope] ?? [];

/** Names of the service accounts that the operator version uses. `default` may be one of them. */
export function serviceAccountNames(csv: ClusterServiceVersion): string[] {
  const named = [...permissionsOf(csv, 'permissions'), ...permissionsOf(csv, 'clusterPermissions')];
  const ofPods = (csv.spec?.install?.spec?.deployments ?? []).map(
    ({ spec }) => spec?.template.spec?.serviceAccountName ?? '',
  );
  const names = [...named.map((each) => each.serviceAccountName ?? ''), ...ofPods];
  return [...new Set(names.filter((each) => each !== ''))].sort();
}

export type RbacObject = ServiceAccount | Role | RoleBinding | ClusterRole | ClusterRoleBinding;

/** RBAC objects that the install plan creates: roles in the operator's own namespace, and cluster roles. */
export function rbacOf(csv: ClusterServiceVersion, namespace: string): RbacObject[] {
  const accounts: ServiceAccount[] = serviceAccountNames(csv)
    .filter((name) => name !== 'default')
    .map((name) => ({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } }));
  return [
    ...accounts,
    ...permissionsOf(csv, 'permissions').flatMap((each) => rolesIn(csv, each, namespace, namespace)),
    ...permissionsOf(csv, 'clusterPermissions').flatMap((each) => clusterRolesOf(csv, each, namespace)),
  ];
}

/**
 * RBAC objects for the target namespaces of the operator: roles in these namespaces, or cluster roles if the operator
 * watches all namespaces. `own` is the namespace in which `csv` is installed.
 */
export function targetRbacOf(csv: ClusterServiceVersion, own: string, targets: readonly string[]): RbacObject[] {
  const permissions = permissionsOf(csv, 'permissions');
  if (targets.includes('')) return permissions.flatMap((each) => clusterRolesOf(csv, each, own));
  return targets
    .filter((each) => each !== own)
    .flatMap((target) => permissions.flatMap((each) => rolesIn(csv, each, own, target)));
}

const subject = (name: string, namespace: string): Subject => ({ kind: 'ServiceAccount', name, namespace });

function rolesIn(
  csv: ClusterServiceVersion,
  { serviceAccountName = '', rules = [] }: StrategyPermissions,
  own: string,
  namespace: string,
): (Role | RoleBinding)[] {
  const labels = ownerLabels(csv);
  const name = nameWithDigest(csv.metadata?.name ?? '', { serviceAccountName, rules });
  return [
    { apiVersion: API_VERSION, kind: 'Role', metadata: { name, namespace, labels }, rules },
    {
      apiVersion: API_VERSION,
      kind: 'RoleBinding',
      metadata: { name, namespace, labels },
      subjects: [subject(serviceAccountName, own)],
      roleRef: { apiGroup: GROUP, kind: 'Role', name },
    },
  ];
}

function clusterRolesOf(
  csv: ClusterServiceVersion,
  { serviceAccountName = '', rules = [] }: StrategyPermissions,
  own: string,
): (ClusterRole | ClusterRoleBinding)[] {
  const labels = ownerLabels(csv);
  const name = nameWithDigest(csv.metadata?.name ?? '', { own, serviceAccountName, rules });
  return [
    { apiVersion: API_VERSION, kind: 'ClusterRole', metadata: { name, labels }, rules },
    {
      apiVersion: API_VERSION,
      kind: 'ClusterRoleBinding',
      metadata: { name, labels },
      subjects: [subject(serviceAccountName, own)],
      roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name },
    },
  ];
}

/** Whether a rule grants all permissions. The user is then warned when the operator is installed. */
export function requestsAllPermissions(csv: ClusterServiceVersion): boolean {
  return permissionsOf(csv, 'clusterPermissions').some(({ rules = [] }) =>
    rules.some(
      ({ verbs = [], apiGroups = [], resources = [] }) =>
        verbs.includes('*') && apiGroups.includes('*') && resources.includes('*'),
    ),
  );
}

const VERBS = {
  admin: ['*'],
  edit: ['create', 'update', 'patch', 'delete'],
  view: ['get', 'list', 'watch'],
} as const;

/**
 * Cluster roles that give users with the default roles admin, edit and view access to a custom resource of the
 * operator.
 */
export function providedApiRoles({ name = '', version = '', kind = '' }: CrdDescription): ClusterRole[] {
  const [plural = '', ...group] = name.split('.');
  const rules = (verbs: readonly string[]): PolicyRule[] => [
    { verbs: [...verbs], apiGroups: [group.join('.')], resources: [plural] },
  ];
  const roles = (['admin', 'edit', 'view'] as const).map(
    (suffix): ClusterRole => ({
      apiVersion: API_VERSION,
      kind: 'ClusterRole',
      metadata: {
        name: `${name}-${version}-${suffix}`,
        labels: {
          'olm.managed': 'true',
          'operators.coreos.com/provided-api': labelValue(kind),
          [`rbac.authorization.k8s.io/aggregate-to-${suffix}`]: 'true',
        },
      },
      rules: rules(VERBS[suffix]),
    }),
  );
  const crdView: ClusterRole = {
    apiVersion: API_VERSION,
    kind: 'ClusterRole',
    metadata: {
      name: `${name}-${version}-crdview`,
      labels: { 'olm.managed': 'true', 'rbac.authorization.k8s.io/aggregate-to-view': 'true' },
    },
    rules: [
      {
        verbs: ['get'],
        apiGroups: ['apiextensions.k8s.io'],
        resources: ['customresourcedefinitions'],
        resourceNames: [name],
      },
    ],
  };
  return [...roles, crdView];
}
