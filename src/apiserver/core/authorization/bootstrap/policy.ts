/**
 * The default roles and bindings, and their reconciliation at each start of the API server. Source of the contents:
 * k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy; OKD for system:node-proxiers and
 * system:sdn-readers.
 */

import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
  Subject,
} from '../../../../api/generated/rbac/v1.ts';
import { EXPIRED_NODES_GROUP } from '../../../../api/kinds/identity/certificatesigningrequests/expired-nodes.ts';
import { aggregateAll } from '../aggregation.ts';
import { breakDown, coversRules } from '../rules.ts';
import { CLUSTER_ROLES } from './cluster-roles.ts';
import { CONTROLLER_ROLES, CONTROLLER_RULES, controllerRoleName } from './controller-roles.ts';
import { imageAndTemplateRoles, SHARED_NAMESPACE, sharedResourceRules } from './image-and-template-roles.ts';
import { machineConfigBindings, machineConfigRoles } from './machine-config.ts';
import { machineClusterRoleBindings, machineClusterRoles } from './machine-roles.ts';
import {
  AUTOUPDATE_ANNOTATION,
  aggregateTo,
  clusterRole,
  clusterRoleBinding,
  eventsRule,
  group,
  READ,
  role,
  roleBinding,
  rule,
  serviceAccount,
  user,
} from './notation.ts';
import { olmClusterRoleBindings, olmClusterRoles } from './olm.ts';
import { OPENSHIFT_BINDINGS, OPENSHIFT_CLUSTER_ROLES } from './openshift.ts';
import { routeClusterRoleBindings, routeClusterRoles, routeRoleBindings, routeRoles } from './openshift-routes.ts';
import { releaseClusterRoleBindings, releaseClusterRoles, releaseRoleBindings, releaseRoles } from './releases.ts';
import { SECURITY_BINDINGS, SECURITY_ROLES } from './security-constraints.ts';

const OPERATOR_ROLES: readonly ClusterRole[] = [
  clusterRole(
    'system:openshift:operator:cluster-reader',
    [rule(READ, 'operator.openshift.io', '*')],
    aggregateTo('cluster-reader'),
  ),
];

const OAUTH_USERS = group('system:authenticated:oauth');

const LOGIN_ROLES: readonly ClusterRole[] = [
  clusterRole('system:openshift:self-user', [
    rule('get', 'user.openshift.io', 'users', '~'),
    // Sufficient for reviews of the requester's own access. The handler requires more for reviews of other subjects.
    rule('create', 'authorization.openshift.io', 'subjectaccessreviews'),
    rule('delete get list watch', 'oauth.openshift.io', 'useroauthaccesstokens'),
  ]),
];

const LOGIN_BINDINGS: readonly ClusterRoleBinding[] = [
  clusterRoleBinding('system:openshift:self-user', [group('system:authenticated')]),
  // A token is deleted by its hash, which only its user can compute.
  clusterRoleBinding('system:oauth-token-deleter', [OAUTH_USERS], 'system:oauth-token-deleters'),
];

export { AUTOUPDATE_ANNOTATION } from './notation.ts';

const SYSTEM = 'kube-system';
const PUBLIC = 'kube-public';
const NODE = 'openshift-node';
/** OKD's role by which hosts read the configuration of their node group. */
const NODE_CONFIG_READER = 'system:node-config-reader';
const NODES = group('system:nodes');
/** Role for the cluster's DNS settings, which the DNS server of each host process reads. */
const DNS_CONFIG_READER = 'system:node-dns-config-reader';
const CONTROLLER_MANAGER = user('system:kube-controller-manager');
const SCHEDULER = user('system:kube-scheduler');
const AUTHENTICATED = group('system:authenticated');
const UNAUTHENTICATED = group('system:unauthenticated');
const BOOTSTRAPPERS = group('system:bootstrappers');
/** OKD's service account of bootstrapping nodes. */
const NODE_BOOTSTRAPPER = serviceAccount('node-bootstrapper', 'openshift-infra');

const clusterRoleBindings: readonly ClusterRoleBinding[] = [
  clusterRoleBinding('cluster-admin', [group('system:masters')]),
  clusterRoleBinding('system:monitoring', [group('system:monitoring')]),
  clusterRoleBinding('system:discovery', [AUTHENTICATED]),
  clusterRoleBinding('system:basic-user', [AUTHENTICATED]),
  clusterRoleBinding('system:public-info-viewer', [AUTHENTICATED, UNAUTHENTICATED]),
  // Nodes get their permissions from the node authorizer. As in upstream, the binding has no subjects.
  clusterRoleBinding('system:node', []),
  clusterRoleBinding('system:node-proxier', [user('system:kube-proxy')]),
  // The host process runs the service proxy with the node's identity.
  clusterRoleBinding('system:node-proxier', [NODES], 'system:node-proxiers'),
  // Nodes enforce network policies, which select pods of all nodes.
  clusterRoleBinding('system:sdn-reader', [NODES], 'system:sdn-readers'),
  clusterRoleBinding('system:kube-controller-manager', [CONTROLLER_MANAGER]),
  clusterRoleBinding('system:kube-dns', [serviceAccount('kube-dns')]),
  clusterRoleBinding('system:kube-scheduler', [SCHEDULER]),
  clusterRoleBinding('system:volume-scheduler', [SCHEDULER]),
  clusterRoleBinding('system:service-account-issuer-discovery', [group('system:serviceaccounts')]),
  clusterRoleBinding('system:kubelet-api-admin', [user('system:kube-apiserver')]),
  // A node with a certificate may renew this certificate.
  clusterRoleBinding(
    'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient',
    [NODES],
    'system:node-certificate-renewal',
  ),
  // A node with an expired certificate may only request a new one.
  clusterRoleBinding('system:expired-node', [group(EXPIRED_NODES_GROUP)]),
  // A joining host requests its certificate with a bootstrap token, or as OKD's service account, whose requests an
  // administrator approves.
  clusterRoleBinding('system:node-bootstrapper', [BOOTSTRAPPERS, NODE_BOOTSTRAPPER]),
  clusterRoleBinding(
    'system:certificates.k8s.io:certificatesigningrequests:nodeclient',
    [BOOTSTRAPPERS],
    'system:node-autoapprove-bootstrap',
  ),
  clusterRoleBinding('system:node-name-reader', [BOOTSTRAPPERS, NODE_BOOTSTRAPPER]),
  ...LOGIN_BINDINGS,
  // All controllers run with one identity. The service accounts are for setups with separate identities, as in
  // upstream.
  ...[...CONTROLLER_RULES.keys()].map((controller) =>
    clusterRoleBinding(controllerRoleName(controller), [serviceAccount(controller), CONTROLLER_MANAGER]),
  ),
  ...SECURITY_BINDINGS,
];

/** Permissions for a leader election lock in a config map, which components before Kubernetes 1.24 can use. */
const leaderLocking = (name: string): Role =>
  role(SYSTEM, `system::leader-locking-${name}`, [
    rule('watch', 'core', 'configmaps'),
    rule('get update', 'core', 'configmaps', name),
    rule('create get list update watch', 'coordination.k8s.io', 'leases'),
    rule('create get list update watch', 'coordination.k8s.io', 'leasecandidates'),
  ]);

const roles: readonly Role[] = [
  role(SYSTEM, 'extension-apiserver-authentication-reader', [
    rule(READ, 'core', 'configmaps', 'extension-apiserver-authentication'),
  ]),
  role(SHARED_NAMESPACE, 'shared-resource-viewer', sharedResourceRules),
  role(SYSTEM, 'system:controller:bootstrap-signer', [rule(READ, 'core', 'secrets')]),
  role(SYSTEM, 'system:controller:cloud-provider', [rule('create get list watch', 'core', 'configmaps')]),
  role(SYSTEM, 'system:controller:token-cleaner', [rule('delete get list watch', 'core', 'secrets'), eventsRule]),
  role(PUBLIC, 'system:controller:bootstrap-signer', [
    rule(READ, 'core', 'configmaps'),
    rule('update', 'core', 'configmaps', 'cluster-info'),
    eventsRule,
  ]),
  // kubeadm's discovery reads this config map without credentials. The kubeconfig in it is signed.
  role(PUBLIC, 'system:cluster-info-reader', [rule('get', 'core', 'configmaps', 'cluster-info')]),
  // During updates, hosts verify each other's kubelets with the CA in this config map.
  role(PUBLIC, 'system:kubelet-serving-ca-reader', [rule('get', 'core', 'configmaps', 'kubelet-serving-ca')]),
  role(SYSTEM, 'system:cluster-settings-reader', [rule(READ, 'core', 'configmaps', 'hyperedge-config')]),
  role(NODE, NODE_CONFIG_READER, [rule(READ, 'core', 'configmaps')]),
  role(SYSTEM, DNS_CONFIG_READER, [rule(READ, 'core', 'configmaps', 'kube-dns')]),
  // Every host is a member of the gossip ring, and every member needs the keys.
  role(SYSTEM, 'system:gossip-keyring-reader', [rule('get', 'core', 'secrets', 'hyperedge-gossip-keyring')]),
  leaderLocking('kube-controller-manager'),
  leaderLocking('kube-scheduler'),
];

const roleBindings: readonly RoleBinding[] = [
  roleBinding(SHARED_NAMESPACE, 'shared-resource-viewer', [AUTHENTICATED], 'shared-resource-viewers'),
  roleBinding(PUBLIC, 'system:cluster-info-reader', [UNAUTHENTICATED, AUTHENTICATED]),
  roleBinding(PUBLIC, 'system:kubelet-serving-ca-reader', [AUTHENTICATED]),
  roleBinding(SYSTEM, 'system:cluster-settings-reader', [BOOTSTRAPPERS, NODE_BOOTSTRAPPER, group('system:nodes')]),
  roleBinding(SYSTEM, 'system:gossip-keyring-reader', [BOOTSTRAPPERS, NODE_BOOTSTRAPPER]),
  roleBinding(
    SYSTEM,
    'extension-apiserver-authentication-reader',
    [CONTROLLER_MANAGER, SCHEDULER],
    'system::extension-apiserver-authentication-reader',
  ),
  roleBinding(SYSTEM, 'system::leader-locking-kube-controller-manager', [
    CONTROLLER_MANAGER,
    serviceAccount('kube-controller-manager'),
    serviceAccount('leader-election-controller'),
  ]),
  roleBinding(SYSTEM, 'system::leader-locking-kube-scheduler', [SCHEDULER, serviceAccount('kube-scheduler')]),
  roleBinding(NODE, NODE_CONFIG_READER, [NODES]),
  roleBinding(SYSTEM, DNS_CONFIG_READER, [NODES]),
  roleBinding(SYSTEM, 'system:controller:bootstrap-signer', [serviceAccount('bootstrap-signer'), CONTROLLER_MANAGER]),
  roleBinding(SYSTEM, 'system:controller:cloud-provider', [serviceAccount('cloud-provider')]),
  roleBinding(SYSTEM, 'system:controller:token-cleaner', [serviceAccount('token-cleaner'), CONTROLLER_MANAGER]),
  roleBinding(PUBLIC, 'system:controller:bootstrap-signer', [serviceAccount('bootstrap-signer'), CONTROLLER_MANAGER]),
];

export interface BootstrapPolicy {
  /** Rules of aggregated roles are already filled in. */
  readonly clusterRoles: readonly ClusterRole[];
  readonly clusterRoleBindings: readonly ClusterRoleBinding[];
  /** Roles in the namespaces kube-system, kube-public, openshift-node and openshift-ingress. */
  readonly roles: readonly Role[];
  readonly roleBindings: readonly RoleBinding[];
}

/** The default policy. Shared data: copy it before changing it. */
export const bootstrapPolicy: BootstrapPolicy = {
  clusterRoles: aggregateAll([
    ...CLUSTER_ROLES,
    ...imageAndTemplateRoles,
    ...CONTROLLER_ROLES,
    ...OPENSHIFT_CLUSTER_ROLES,
    ...SECURITY_ROLES,
    ...routeClusterRoles,
    ...releaseClusterRoles,
    ...olmClusterRoles,
    ...LOGIN_ROLES,
    ...machineClusterRoles,
    ...machineConfigRoles,
    ...OPERATOR_ROLES,
  ]),
  clusterRoleBindings: [
    ...clusterRoleBindings,
    ...OPENSHIFT_BINDINGS,
    ...routeClusterRoleBindings,
    ...releaseClusterRoleBindings,
    ...machineClusterRoleBindings,
    ...machineConfigBindings,
    ...olmClusterRoleBindings,
  ],
  roles: [...roles, ...routeRoles, ...releaseRoles],
  roleBindings: [...roleBindings, ...routeRoleBindings, ...releaseRoleBindings],
};

const OWN_NAMESPACES: ReadonlySet<string> = new Set([SYSTEM, PUBLIC]);
/** API groups that kube-apiserver does not have. */
const FOREIGN_GROUP = /\.(?:openshift\.io|hyperedge\.dev)$|(?:^|\.)(?:operators\.coreos\.com|metal3\.io)$/;
const isForeign = ({ apiGroups = [] }: PolicyRule): boolean => apiGroups.some((name) => FOREIGN_GROUP.test(name));
const upstreamRoles = aggregateAll([
  ...CLUSTER_ROLES,
  ...CONTROLLER_ROLES.filter(({ rules = [] }) => !rules.some(isForeign)),
]);
const upstreamRoleNames = new Set(upstreamRoles.map(({ metadata }) => metadata?.name));
const isOwnNamespace = ({ metadata }: Role | RoleBinding): boolean => OWN_NAMESPACES.has(metadata?.namespace ?? '');

/** The default policy without the roles and bindings of OpenShift's groups and namespaces. */
export const upstreamPolicy: BootstrapPolicy = {
  clusterRoles: upstreamRoles,
  clusterRoleBindings: clusterRoleBindings.filter(({ roleRef }) => upstreamRoleNames.has(roleRef.name)),
  roles: roles.filter(isOwnNamespace),
  roleBindings: roleBindings.filter(isOwnNamespace),
};

/**
 * Adds missing rules, labels and annotations to the stored role; removes nothing. Undefined if nothing is missing or
 * the administrator has switched off the automatic update. Rules of aggregated roles belong to the aggregation
 * controller.
 */
export function reconcileRole<T extends Role | ClusterRole>(expected: T, stored: T): T | undefined {
  if (!autoupdates(stored)) return undefined;
  const aggregated = 'aggregationRule' in expected && expected.aggregationRule !== undefined;
  const missing = aggregated ? [] : missingRules(expected.rules ?? [], stored.rules ?? []);
  const selectors = aggregated && !('aggregationRule' in stored && stored.aggregationRule !== undefined);
  const metadata = mendedMetadata(expected, stored);
  if (missing.length === 0 && !selectors && metadata === undefined) return undefined;
  return {
    ...stored,
    metadata: metadata ?? stored.metadata,
    ...(selectors && 'aggregationRule' in expected ? { aggregationRule: expected.aggregationRule } : {}),
    rules: [...(stored.rules ?? []), ...missing],
  };
}

/**
 * Adds missing subjects, labels and annotations to the stored binding. Undefined if nothing is missing. `'replace'` if
 * it refers to another role: a reference cannot be changed, so the binding must be deleted and re-created.
 */
export function reconcileBinding<T extends RoleBinding | ClusterRoleBinding>(
  expected: T,
  stored: T,
): T | 'replace' | undefined {
  if (!autoupdates(stored)) return undefined;
  if (stored.roleRef.kind !== expected.roleRef.kind || stored.roleRef.name !== expected.roleRef.name) return 'replace';
  const missing = (expected.subjects ?? []).filter(
    (wanted) => !(stored.subjects ?? []).some((own) => sameSubject(own, wanted)),
  );
  const metadata = mendedMetadata(expected, stored);
  if (missing.length === 0 && metadata === undefined) return undefined;
  return {
    ...stored,
    metadata: metadata ?? stored.metadata,
    subjects: [...(stored.subjects ?? []), ...missing],
  };
}

/** Names of bindings that were split from another binding, and the names of the original bindings. */
const SPLIT_FROM: ReadonlyMap<string, string> = new Map([['system:public-info-viewer', 'system:discovery']]);

/**
 * The cluster role binding to create if `expected` is missing. If `expected` was split from a stored binding, the new
 * binding gets the subjects, labels and annotations of the stored binding, so that it grants nothing to subjects that
 * the administrator has removed there. `stored` finds cluster role bindings by name.
 */
export function bindingToCreate(
  expected: ClusterRoleBinding,
  stored: (name: string) => ClusterRoleBinding | undefined,
): ClusterRoleBinding {
  const name = expected.metadata?.name ?? '';
  const source = SPLIT_FROM.get(name);
  const from = source === undefined || stored(name) !== undefined ? undefined : stored(source);
  if (from === undefined) return expected;
  const { labels, annotations } = from.metadata ?? {};
  const split: ClusterRoleBinding = {
    ...expected,
    metadata: { name, labels: labels ?? {}, annotations: annotations ?? {} },
    subjects: from.subjects ?? [],
  };
  const reconciled = reconcileBinding(expected, split);
  return reconciled === undefined || reconciled === 'replace' ? split : reconciled;
}

type Bootstrapped = Role | ClusterRole | RoleBinding | ClusterRoleBinding;

function autoupdates(stored: Bootstrapped): boolean {
  return stored.metadata?.annotations?.[AUTOUPDATE_ANNOTATION] !== 'false';
}

/** Missing permissions: the complete rule if all of its permissions are missing, otherwise single permissions. */
function missingRules(expected: readonly PolicyRule[], stored: readonly PolicyRule[]): PolicyRule[] {
  const missing: PolicyRule[] = [];
  for (const wanted of expected) {
    if (coversRules(stored, [wanted]).covered) continue;
    const singles = [...breakDown(wanted)];
    const lacking = singles.filter((single) => !coversRules(stored, [single]).covered);
    if (lacking.length === singles.length) missing.push(wanted);
    else missing.push(...lacking);
  }
  return missing;
}

function mendedMetadata(
  expected: Bootstrapped,
  stored: Bootstrapped,
): NonNullable<Bootstrapped['metadata']> | undefined {
  const labels = withMissing(expected.metadata?.labels, stored.metadata?.labels);
  const annotations = withMissing(expected.metadata?.annotations, stored.metadata?.annotations);
  if (labels === undefined && annotations === undefined) return undefined;
  return {
    ...stored.metadata,
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
  };
}

function withMissing(
  expected: Readonly<Record<string, string>> | undefined,
  stored: Readonly<Record<string, string>> | undefined,
): Record<string, string> | undefined {
  const lacking = Object.keys(expected ?? {}).some((key) => !Object.hasOwn(stored ?? {}, key));
  return lacking ? { ...expected, ...stored } : undefined;
}

function sameSubject(a: Subject, b: Subject): boolean {
  return a.kind === b.kind && a.name === b.name && (a.namespace ?? '') === (b.namespace ?? '');
}
