/** Permissions of hosts to read announced releases with their files and trusted keys, and operator catalogs. */
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '../../../../api/generated/rbac/v1.ts';
import { CATALOG_PATH } from '../../../../api/kinds/nodes/nodes/catalog-report.ts';
import { KEYS_NAME, KEYS_NAMESPACE, RELEASE_NAMESPACE, RELEASE_PATH } from '../../../../api/releases/announcement.ts';
import { clusterRole, clusterRoleBinding, group, READ, role, roleBinding, rule, urlRule } from './notation.ts';

const NAME = 'system:node-release-reader';
const NODES = group('system:nodes');

export const releaseClusterRoles: readonly ClusterRole[] = [
  clusterRole(NAME, [urlRule('get', `${RELEASE_PATH}* ${CATALOG_PATH}*`)]),
];

export const releaseClusterRoleBindings: readonly ClusterRoleBinding[] = [
  clusterRoleBinding(NAME, [NODES], 'system:node-release-readers'),
];

export const releaseRoles: readonly Role[] = [
  role(RELEASE_NAMESPACE, NAME, [rule(READ, 'core', 'configmaps')]),
  role(KEYS_NAMESPACE, NAME, [rule(READ, 'core', 'configmaps', KEYS_NAME)]),
];

export const releaseRoleBindings: readonly RoleBinding[] = [RELEASE_NAMESPACE, KEYS_NAMESPACE].map((namespace) =>
  roleBinding(namespace, NAME, [NODES]),
);
