/**
 * Permissions of OpenShift's router and of users of routes. The rules of admin, edit and view for routes are in
 * openshift.ts. Source: openshift/openshift-apiserver pkg/bootstrappolicy/policy.go.
 */
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '../../../../api/generated/rbac/v1.ts';
import {
  aggregateTo,
  clusterRole,
  clusterRoleBinding,
  eventsRule,
  group,
  READ,
  role,
  roleBinding,
  rule,
  user,
  WRITE,
} from './notation.ts';

const ROUTES = 'route.openshift.io';
const GATEWAYS = 'gateway.networking.k8s.io';
const NETWORKING = 'networking.k8s.io';
const NODES = group('system:nodes');
/** Read-only role for nodes. OpenShift's `system:router` may also write the status of routes, which nodes must not. */
const ROUTER = 'system:node-router';
const CONTROLLER = 'system:controller:ingress-router';
const CONSOLE_CONTROLLER = 'system:controller:console-route';
const AGGREGATE = 'system:openshift:aggregate-routes-to';

/** Namespace of the default certificate of routes. */
export const INGRESS_NAMESPACE = 'openshift-ingress';
const DEFAULT_CERTIFICATE = 'router-certs-default';
const MANAGED_NAMESPACE = 'openshift-config-managed';
const CONSOLE_PUBLIC = 'console-public';

export const routeClusterRoles: readonly ClusterRole[] = [
  // Role for reading the objects that the router of each host serves.
  clusterRole(ROUTER, [
    rule(READ, 'core', 'namespaces services'),
    rule(READ, 'discovery.k8s.io', 'endpointslices'),
    rule(READ, ROUTES, 'routes'),
    rule(READ, NETWORKING, 'ingressclasses ingresses'),
    rule(READ, GATEWAYS, 'gateways httproutes referencegrants'),
  ]),
  // Role for routers that run as pods.
  clusterRole('system:router', [
    rule('list watch', 'core', 'endpoints services'),
    rule('list watch', 'discovery.k8s.io', 'endpointslices'),
    rule('create', 'authentication.k8s.io', 'tokenreviews'),
    rule('create', 'authorization.k8s.io', 'subjectaccessreviews'),
    rule('list watch', ROUTES, 'routes'),
    rule('update', ROUTES, 'routes/status'),
  ]),
  clusterRole(CONTROLLER, [
    rule(READ, 'core', 'nodes services'),
    rule('get patch', 'core', 'configmaps', 'console-public'),
    rule('create get list patch update watch', 'core', 'secrets'),
    rule(READ, 'discovery.k8s.io', 'endpointslices'),
    rule(READ, ROUTES, 'routes'),
    rule('patch update', ROUTES, 'routes/status'),
    rule('create get list watch', NETWORKING, 'ingressclasses'),
    rule(READ, NETWORKING, 'ingresses'),
    rule('patch update', NETWORKING, 'ingresses/status'),
    rule('create get list watch', 'apiextensions.k8s.io', 'customresourcedefinitions'),
    rule('create get list watch', GATEWAYS, 'gatewayclasses gateways httproutes referencegrants'),
    // Needed to give hosts read access to the certificates of Gateway listeners.
    rule('create delete get list patch watch', 'rbac.authorization.k8s.io', 'rolebindings roles'),
    rule('patch update', GATEWAYS, 'gatewayclasses/status gateways/status httproutes/status'),
    eventsRule,
  ]),
  clusterRole(CONSOLE_CONTROLLER, [
    rule('create', 'core', 'namespaces'),
    rule(READ, 'core', 'endpoints'),
    rule('create delete get list patch watch', 'core', 'services'),
    rule('create delete get list patch watch', 'discovery.k8s.io', 'endpointslices'),
    rule('create delete get list patch watch', ROUTES, 'routes'),
    rule('create update', ROUTES, 'routes/custom-host'),
  ]),
  clusterRole(`${AGGREGATE}-edit`, [rule(`${READ} ${WRITE}`, GATEWAYS, 'httproutes')], aggregateTo('edit')),
  clusterRole(`${AGGREGATE}-view`, [rule(READ, GATEWAYS, 'gateways httproutes')], aggregateTo('view')),
];

export const routeClusterRoleBindings: readonly ClusterRoleBinding[] = [
  clusterRoleBinding(ROUTER, [NODES], 'system:node-routers'),
  clusterRoleBinding(CONTROLLER, [user('system:kube-controller-manager')]),
  clusterRoleBinding(CONSOLE_CONTROLLER, [user('system:kube-controller-manager')]),
];

export const routeRoles: readonly Role[] = [
  role(INGRESS_NAMESPACE, 'system:router-certificate-reader', [rule(READ, 'core', 'secrets', DEFAULT_CERTIFICATE)]),
  // Every authenticated user may read the URL of the console.
  role(MANAGED_NAMESPACE, CONSOLE_PUBLIC, [rule(READ, 'core', 'configmaps', CONSOLE_PUBLIC)]),
];

export const routeRoleBindings: readonly RoleBinding[] = [
  roleBinding(INGRESS_NAMESPACE, 'system:router-certificate-reader', [NODES]),
  roleBinding(MANAGED_NAMESPACE, CONSOLE_PUBLIC, [group('system:authenticated')]),
];
