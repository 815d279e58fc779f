/** Roles that may read operator.openshift.io. Source: the cluster-reader rules of OpenShift's operators. */
import type { ClusterRole } from 'kubernetes-types/rbac/v1';
import { aggregateTo, clusterRole, READ, rule } from './notation.ts';

export const OPERATOR_ROLES: readonly ClusterRole[] = [
  clusterRole(
    'system:openshift:operator:cluster-reader',
    [rule(READ, 'operator.openshift.io', '*')],
    aggregateTo('cluster-reader'),
  ),
];
