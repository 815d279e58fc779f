/**
 * Permissions on security.openshift.io. Source: openshift/cluster-kube-apiserver-operator
 * bindata/bootkube/scc-manifests, openshift/openshift-apiserver pkg/bootstrappolicy.
 */
import type { ClusterRole, ClusterRoleBinding } from '../../../../api/generated/rbac/v1.ts';
import { aggregateTo, clusterRole, clusterRoleBinding, group, READ, rule, serviceAccount, user } from './notation.ts';

const SECURITY = 'security.openshift.io';
const CONSTRAINTS = 'securitycontextconstraints';
const REVIEWS = 'podsecuritypolicyreviews podsecuritypolicyselfsubjectreviews podsecuritypolicysubjectreviews';
const ALLOCATION = 'system:openshift:controller:namespace-security-allocation-controller';
/** Constraints that every user, and so every service account, may use. */
const DEFAULT = 'restricted-v2';
const NAMES = ['anyuid', 'hostaccess', 'hostmount-anyuid', 'hostnetwork', 'hostnetwork-v2', 'nonroot', 'nonroot-v2'];

const roleName = (constraints: string): string => `system:openshift:scc:${constraints}`;

export const SECURITY_ROLES: readonly ClusterRole[] = [
  ...[...NAMES, 'privileged', 'restricted', DEFAULT].map((name) =>
    clusterRole(roleName(name), [rule('use', SECURITY, CONSTRAINTS, name)]),
  ),
  clusterRole('system:openshift:aggregate-security-to-edit', [rule('create', SECURITY, REVIEWS)], aggregateTo('edit')),
  clusterRole(ALLOCATION, [
    rule('create get list update watch', SECURITY, 'rangeallocations'),
    rule('get list patch update watch', 'core', 'namespaces'),
  ]),
  clusterRole('system:openshift:security-reader', [rule(READ, SECURITY, `${CONSTRAINTS} rangeallocations`)]),
];

export const SECURITY_BINDINGS: readonly ClusterRoleBinding[] = [
  clusterRoleBinding(roleName(DEFAULT), [group('system:authenticated')]),
  clusterRoleBinding(roleName('privileged'), [
    group('system:cluster-admins'),
    group('system:nodes'),
    serviceAccount('machine-config-daemon', 'openshift-machine-config-operator'),
  ]),
  clusterRoleBinding(ALLOCATION, [user('system:kube-controller-manager')]),
];
