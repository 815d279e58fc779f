/**
 * Permissions of users of operators and of the controllers that install them. Source: operator-lifecycle-manager's
 * manifests (aggregate-olm-edit, aggregate-olm-view, system:controller:operator-lifecycle-manager).
 */
import type { ClusterRole, ClusterRoleBinding, PolicyRule } from '../../../../api/generated/rbac/v1.ts';
import { aggregateTo, clusterRole, clusterRoleBinding, eventsRule, READ, rule, urlRule, user } from './notation.ts';

const OLM = 'operators.coreos.com';
const PACKAGES = 'packages.operators.coreos.com';
const LIFECYCLE_MANAGER = 'system:controller:operator-lifecycle-manager';
const BOTH = ['admin', 'edit'] as const;

const aggregate = (...names: readonly string[]): Record<string, string> =>
  Object.assign({}, ...names.map((name) => aggregateTo(name)));

export const olmClusterRoles: readonly ClusterRole[] = [
  clusterRole(
    'aggregate-olm-edit',
    [
      rule('create delete patch update', OLM, 'subscriptions'),
      rule('delete', OLM, 'catalogsources clusterserviceversions installplans subscriptions'),
    ],
    aggregate(...BOTH),
  ),
  clusterRole(
    'aggregate-olm-view',
    [
      rule(READ, OLM, 'catalogsources clusterserviceversions installplans operatorgroups subscriptions'),
      rule(READ, PACKAGES, 'packagemanifests packagemanifests/icon'),
    ],
    aggregate(...BOTH, 'view'),
  ),
  // The controllers install approved operators as this user, as upstream's operator does.
  clusterRole(LIFECYCLE_MANAGER, [rule('*', '*', '*'), urlRule('*', '*')]),
];

export const olmClusterRoleBindings: readonly ClusterRoleBinding[] = [
  clusterRoleBinding(LIFECYCLE_MANAGER, [user(LIFECYCLE_MANAGER)]),
];

/** Rules of each controller, by the name of its service account. */
export const OLM_CONTROLLERS: readonly (readonly [string, readonly PolicyRule[]])[] = [
  [
    'olm-controller',
    [
      rule('create delete deletecollection get list patch update watch', OLM, '*'),
      rule('create delete deletecollection get list patch update watch', 'olm.hyperedge.dev', 'catalogpackages'),
      rule('get list watch', 'core', 'configmaps namespaces serviceaccounts'),
      rule('patch', 'core', 'nodes'),
      rule('get list watch', 'apps', 'deployments'),
      rule('get list watch', 'apiextensions.k8s.io', 'customresourcedefinitions'),
      rule('impersonate', 'core', 'groups serviceaccounts users'),
      eventsRule,
    ],
  ],
];
