/** Roles. Source: k8s.io/kubernetes/pkg/registry/rbac/role. */
import type { Role } from '../../../generated/rbac/v1.ts';
import { createdAtColumn, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { openshiftRole } from '../authorization/aliases.ts';
import { RBAC_GROUP, validateRules } from '../rbac/rules.ts';

export const roles: KindDefinition<Role> = {
  group: RBAC_GROUP,
  version: 'v1',
  kind: 'Role',
  plural: 'roles',
  singular: 'role',
  listKind: 'RoleList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.rbac.v1.Role',
  skeleton: { rules: null },
  storagePrefix: 'roles',
  nameRule: 'pathSegment',
  allowCreateOnUpdate: true,
  aliases: [sameShape('rbac.authorization.k8s.io', 'v1beta1', '1.17', '1.22'), openshiftRole],
  strategy: {
    validate: (role) => validateRules(role.rules, { namespaced: true }),
    validateUpdate: (role) => validateRules(role.rules, { namespaced: true }),
  },
  columns: [nameColumn, createdAtColumn],
};
