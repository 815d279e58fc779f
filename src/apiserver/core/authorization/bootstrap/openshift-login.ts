/** Roles of users who log in. Source: bootstrap policy of openshift/openshift-apiserver 4.10. */
import type { ClusterRole, ClusterRoleBinding } from 'kubernetes-types/rbac/v1';
import { clusterRole, clusterRoleBinding, group, rule } from './notation.ts';

const OAUTH_USERS = group('system:authenticated:oauth');

export const LOGIN_ROLES: readonly ClusterRole[] = [
  clusterRole('system:openshift:self-user', [
    rule('get', 'user.openshift.io', 'users', '~'),
    // Sufficient for reviews of the own user. The handler requires more for reviews of other subjects.
    rule('create', 'authorization.openshift.io', 'subjectaccessreviews'),
    rule('delete get list watch', 'oauth.openshift.io', 'useroauthaccesstokens'),
  ]),
];

export const LOGIN_BINDINGS: readonly ClusterRoleBinding[] = [
  clusterRoleBinding('system:openshift:self-user', [group('system:authenticated')]),
  // A token is deleted by its hash, which only its user can compute.
  clusterRoleBinding('system:oauth-token-deleter', [OAUTH_USERS], 'system:oauth-token-deleters'),
];
