/** Cluster role bindings. Source: k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding. */
import type { ClusterRoleBinding } from '../../../generated/rbac/v1.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { openshiftClusterRoleBinding } from '../authorization/aliases.ts';
import { bindingColumns } from '../rbac/binding-columns.ts';
import { RBAC_GROUP, setBindingDefaults, validateBinding, validateBindingUpdate } from '../rbac/rules.ts';

export const clusterRoleBindings: KindDefinition<ClusterRoleBinding> = {
  group: RBAC_GROUP,
  version: 'v1',
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  singular: 'clusterrolebinding',
  listKind: 'ClusterRoleBindingList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.rbac.v1.ClusterRoleBinding',
  skeleton: { roleRef: {} },
  storagePrefix: 'clusterrolebindings',
  nameRule: 'pathSegment',
  allowCreateOnUpdate: true,
  aliases: [sameShape('rbac.authorization.k8s.io', 'v1beta1', '1.17', '1.22'), openshiftClusterRoleBinding],
  setDefaults: setBindingDefaults,
  strategy: {
    validate: (binding) => validateBinding(binding, { namespaced: false }),
    validateUpdate: (binding, old) => validateBindingUpdate(binding, old, { namespaced: false }),
  },
  columns: bindingColumns,
};
