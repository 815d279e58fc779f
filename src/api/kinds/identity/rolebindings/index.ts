/** Role bindings. Source: k8s.io/kubernetes/pkg/registry/rbac/rolebinding. */
import type { RoleBinding } from '../../../generated/rbac/v1.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { openshiftRoleBinding } from '../authorization/aliases.ts';
import { bindingColumns } from '../rbac/binding-columns.ts';
import { RBAC_GROUP, setBindingDefaults, validateBinding, validateBindingUpdate } from '../rbac/rules.ts';

export const roleBindings: KindDefinition<RoleBinding> = {
  group: RBAC_GROUP,
  version: 'v1',
  kind: 'RoleBinding',
  plural: 'rolebindings',
  singular: 'rolebinding',
  listKind: 'RoleBindingList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.rbac.v1.RoleBinding',
  skeleton: { roleRef: {} },
  storagePrefix: 'rolebindings',
  nameRule: 'pathSegment',
  allowCreateOnUpdate: true,
  aliases: [sameShape('rbac.authorization.k8s.io', 'v1beta1', '1.17', '1.22'), openshiftRoleBinding],
  setDefaults: setBindingDefaults,
  strategy: {
    validate: (binding) => validateBinding(binding, { namespaced: true }),
    validateUpdate: (binding, old) => validateBindingUpdate(binding, old, { namespaced: true }),
  },
  columns: bindingColumns,
};
