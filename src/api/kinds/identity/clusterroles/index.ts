/** Cluster roles. Source: k8s.io/kubernetes/pkg/registry/rbac/clusterrole. */
import type { ClusterRole } from '../../../generated/rbac/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { createdAtColumn, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateLabelSelector } from '../../../validation/selectors.ts';
import { openshiftClusterRole } from '../authorization/aliases.ts';
import { RBAC_GROUP, validateRules } from '../rbac/rules.ts';

function validate(role: ClusterRole): FieldError[] {
  const errors = validateRules(role.rules, { namespaced: false });
  if (role.aggregationRule === undefined) return errors;
  const path = 'aggregationRule.clusterRoleSelectors';
  const selectors = role.aggregationRule.clusterRoleSelectors ?? [];
  if (selectors.length === 0) {
    errors.push(fieldError.required(path, 'at least one clusterRoleSelector required if aggregationRule is non-nil'));
  }
  selectors.forEach((selector, index) => {
    errors.push(...validateLabelSelector(selector, `${path}[${index}]`));
  });
  return errors;
}

export const clusterRoles: KindDefinition<ClusterRole> = {
  group: RBAC_GROUP,
  version: 'v1',
  kind: 'ClusterRole',
  plural: 'clusterroles',
  singular: 'clusterrole',
  listKind: 'ClusterRoleList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.rbac.v1.ClusterRole',
  skeleton: { rules: null },
  storagePrefix: 'clusterroles',
  nameRule: 'pathSegment',
  allowCreateOnUpdate: true,
  aliases: [sameShape('rbac.authorization.k8s.io', 'v1beta1', '1.17', '1.22'), openshiftClusterRole],
  strategy: { validate, validateUpdate: validate },
  columns: [nameColumn, createdAtColumn],
};
