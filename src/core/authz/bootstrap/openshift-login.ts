/** Roles of users who log in. Source: openshift/openshift-apiserver's bootstrap policy of release 4.10. */
import type { ClusterRole, ClusterRoleBinding } from 'kubernetes-types/rbac/v1';
import { clusterRole, clusterRoleBinding, group, rule } from './notation.ts';

const OAUTH_USERS = group('system:authenticated:oauth');

export const LOGIN_ROLES: readonly ClusterRole[] = [
  clusterRole('system:openshift:self-user', [
    rule('get', 'user.openshift.io', 'users', '~'),
    // Reviews of others need more rights: see the handler of the review.
    rule('create', 'authorization.openshift.io', 'subjectaccessreviews'),
    rule('delete get list watch', 'oauth.openshift.io', 'useroauthaccesstokens'),
  ]),
];

export const LOGIN_BINDINGS: readonly ClusterRoleBinding[] = [
  clusterRoleBinding('system:openshift:self-user', [group('system:authenticated')]),
  // A token is deleted by its hash, which only its user can know.
  clusterRoleBinding('system:oauth-token-deleter', [OAUTH_USERS], 'system:oauth-token-deleters'),
];
