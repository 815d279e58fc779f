/** Objects that every cluster must have, written at start: namespaces, priority classes, default RBAC policy. */
import type { Deployment } from '../../api/generated/apps/v1.ts';
import type { ConfigMap, Namespace, ServiceAccount } from '../../api/generated/core/v1.ts';
import type { ClusterRoleBinding } from '../../api/generated/rbac/v1.ts';
import type { PriorityClass } from '../../api/generated/scheduling/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { HOST_PROGRAMS_IMAGE, HOST_ROOT_IMAGE } from '../../api/podspec/host-root-image.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { DAEMON, DAEMON_NAMESPACE } from '../../openshift/machine-config/core/pools/daemon-set.ts';
import { DEFAULT_CONSTRAINTS } from '../../openshift/security-context-constraints/core/defaults.ts';
import {
  bindingToCreate,
  bootstrapPolicy,
  reconcileBinding,
  reconcileRole,
  SELF_PROVISIONERS,
  upstreamPolicy,
} from '../core/authorization/index.ts';
import type { WriteRequest } from '../pipeline/write-request.ts';
import type { WriteContext } from '../rest/context.ts';
import { createObject } from '../rest/writes/create.ts';
import { deleteObject } from '../rest/writes/delete.ts';
import { updateObject } from '../rest/writes/update.ts';

const OWN: UserInfo = { name: 'system:apiserver', groups: ['system:masters', 'system:authenticated'] };
const OWN_MANAGER = 'kube-apiserver';
const RBAC = 'rbac.authorization.k8s.io';

const UPSTREAM_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];
const OPENSHIFT_NAMESPACES = [
  'openshift',
  'openshift-cluster-version',
  'openshift-config',
  'openshift-config-managed',
  'openshift-infra',
  'openshift-node',
  'openshift-ingress',
  'openshift-machine-api',
  'openshift-etcd',
  'openshift-kube-apiserver',
  'openshift-kube-controller-manager',
  'openshift-kube-scheduler',
  'openshift-ingress-operator',
];

/** Namespace of the machine config daemon, whose pods run on every node with full access to the host. */
const DAEMON_NAMESPACE_OBJECT: Namespace = {
  metadata: {
    name: DAEMON_NAMESPACE,
    annotations: { 'openshift.io/node-selector': '' },
    labels: Object.fromEntries(
      ['enforce', 'audit', 'warn'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'privileged']),
    ),
  },
};
/**
 * `oc adm upgrade status` reads the image of this Deployment. It has no pods, because hosts apply machine configs
 * themselves.
 */
const MACHINE_CONFIG_OPERATOR: Deployment = {
  metadata: {
    name: 'machine-config-operator',
    namespace: DAEMON_NAMESPACE,
    annotations: { 'kubernetes.io/description': 'Only for oc adm upgrade status; the hosts apply machine configs.' },
  },
  spec: {
    replicas: 0,
    selector: { matchLabels: { 'k8s-app': 'machine-config-operator' } },
    template: {
      metadata: { labels: { 'k8s-app': 'machine-config-operator' } },
      spec: { containers: [{ name: 'machine-config-operator', image: HOST_PROGRAMS_IMAGE }] },
    },
  },
};
const DAEMON_ACCOUNT: ServiceAccount = { metadata: { name: DAEMON, namespace: DAEMON_NAMESPACE } };

/** OKD's service account of hosts that join without a bootstrap token. */
const NODE_BOOTSTRAPPER: ServiceAccount = { metadata: { name: 'node-bootstrapper', namespace: 'openshift-infra' } };

/** Holds the console URL for `oc whoami --show-console`. The router controller writes the URL. */
const CONSOLE_PUBLIC: ConfigMap = { metadata: { name: 'console-public', namespace: 'openshift-config-managed' } };

/**
 * Image streams that `oc debug node/NAME` and `oc adm must-gather` use. They refer to the host's own programs, so that
 * no registry is needed.
 */
const HOST_STREAMS = { tools: `${HOST_ROOT_IMAGE}:latest`, 'must-gather': HOST_PROGRAMS_IMAGE };

const hostStream = ([name, image]: readonly [string, string]): KubeObject => {
  const from = { kind: 'DockerImage', name: image };
  const spec = { lookupPolicy: { local: false }, tags: [{ name: 'latest', from }] };
  return { metadata: { name, namespace: 'openshift' }, spec } as KubeObject;
};

const PRIORITY_CLASSES: readonly PriorityClass[] = [
  {
    metadata: { name: 'system-node-critical' },
    value: 2_000_001_000,
    description: 'Used for system critical pods that must not be moved from their current node.',
  },
  {
    metadata: { name: 'system-cluster-critical' },
    value: 2_000_000_000,
    description:
      'Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.',
  },
];
const USER_CRITICAL: PriorityClass = {
  metadata: { name: 'openshift-user-critical' },
  value: 1_000_000_000,
  description: 'Used by pods of an administrator, such as those of oc debug, that must not be preempted by workloads.',
};

export function ownRequest(
  context: WriteContext,
  plural: string,
  group: string,
  namespace: string,
  name: string,
): WriteRequest {
  return {
    kind: context.kinds.stored(plural, group),
    namespace,
    name,
    subresource: '',
    user: OWN,
    own: true,
    options: { dryRun: false, validation: 'Ignore', fieldManager: OWN_MANAGER, force: false },
    warnings: [],
  };
}

/**
 * Creates `object` if it is missing. Otherwise writes the result of `reconcile`, which returns undefined for no change.
 */
export async function ensureObject(
  context: WriteContext,
  plural: string,
  group: string,
  object: KubeObject,
  reconcile?: (stored: KubeObject) => KubeObject | 'replace' | undefined,
  fieldManager = OWN_MANAGER,
): Promise<void> {
  const { name = '', namespace = '' } = object.metadata ?? {};
  const own = ownRequest(context, plural, group, namespace, name);
  const request = { ...own, options: { ...own.options, fieldManager } };
  const cached = request.kind.cache?.get(namespace, name);
  if (cached === undefined) {
    try {
      await createObject(context, request, structuredClone(object));
    } catch (error) {
      // Another API server that starts at the same time has created it.
      if (!isApiError(error, 'AlreadyExists')) throw error;
    }
    return;
  }
  if (reconcile === undefined) return;
  const reconciled = reconcile(cached.parse());
  if (reconciled === undefined) return;
  if (reconciled === 'replace') {
    await deleteObject(context, request, {
      gracePeriodSeconds: 0,
      propagation: 'Background',
      uid: undefined,
      resourceVersion: undefined,
      dryRun: false,
    });
    await createObject(context, request, structuredClone(object));
    return;
  }
  await updateObject(context, request, {
    strategy: request.kind.definition.strategy,
    next: (current) => {
      const again = reconcile(current);
      return again === undefined || again === 'replace' ? current : again;
    },
  });
}

const storedBinding = (context: WriteContext, name: string): ClusterRoleBinding | undefined =>
  context.kinds.stored('clusterrolebindings', RBAC).cache?.get('', name)?.parse();

/** Deletes a binding of the other profile unless an administrator has created or changed it. */
async function removeUnchanged(context: WriteContext, binding: ClusterRoleBinding): Promise<void> {
  const name = binding.metadata?.name ?? '';
  const stored = storedBinding(context, name);
  if (stored === undefined) return;
  const made = ({ metadata, roleRef, subjects }: ClusterRoleBinding): string =>
    JSON.stringify([
      metadata?.labels,
      metadata?.annotations,
      roleRef.name,
      subjects?.map((each) => [each.kind, each.name]),
    ]);
  if (made(stored) !== made(binding)) return;
  await deleteObject(context, ownRequest(context, 'clusterrolebindings', RBAC, '', name), {
    gracePeriodSeconds: 0,
    propagation: 'Background',
    uid: stored.metadata?.uid,
    resourceVersion: stored.metadata?.resourceVersion,
    dryRun: false,
  });
}

function openshiftObjects(context: WriteContext, isOkd: boolean): Promise<void>[] {
  return [
    ensureObject(context, 'serviceaccounts', '', structuredClone(NODE_BOOTSTRAPPER)),
    ensureObject(context, 'configmaps', '', structuredClone(CONSOLE_PUBLIC)),
    ...(isOkd
      ? [
          ensureObject(context, 'serviceaccounts', '', structuredClone(DAEMON_ACCOUNT)),
          ensureObject(context, 'deployments', 'apps', structuredClone(MACHINE_CONFIG_OPERATOR)),
        ]
      : []),
    // Constraints that an administrator has changed stay as they are.
    ...DEFAULT_CONSTRAINTS.map((each) =>
      ensureObject(context, 'securitycontextconstraints', 'security.openshift.io', each),
    ),
    ...Object.entries(HOST_STREAMS).map((each) =>
      ensureObject(context, 'imagestreams', 'image.openshift.io', hostStream(each)),
    ),
    ensureObject(context, 'priorityclasses', 'scheduling.k8s.io', USER_CRITICAL),
  ];
}

/**
 * Creates missing objects and completes existing objects. Independent writes run in parallel, so that they share
 * commits.
 */
export async function bootstrap(context: WriteContext): Promise<void> {
  const { openshift, upstreamOnly = false } = context.config;
  const isOkd = openshift?.profile === 'okd' && !upstreamOnly;
  const policy = upstreamOnly ? upstreamPolicy : bootstrapPolicy;
  const names = upstreamOnly ? UPSTREAM_NAMESPACES : [...UPSTREAM_NAMESPACES, ...OPENSHIFT_NAMESPACES];
  const namespaces = [
    ...names.map((name): Namespace => ({ metadata: { name } })),
    ...(upstreamOnly ? [] : [DAEMON_NAMESPACE_OBJECT]),
  ];
  await Promise.all(namespaces.map((each) => ensureObject(context, 'namespaces', '', each)));
  await Promise.all([
    ...(upstreamOnly ? [] : openshiftObjects(context, isOkd)),
    ...PRIORITY_CLASSES.map((each) => ensureObject(context, 'priorityclasses', 'scheduling.k8s.io', each)),
    ...policy.clusterRoles.map((role) =>
      ensureObject(context, 'clusterroles', RBAC, role, (stored) => reconcileRole(role, stored as typeof role)),
    ),
    ...policy.roles.map((role) =>
      ensureObject(context, 'roles', RBAC, role, (stored) => reconcileRole(role, stored as typeof role)),
    ),
    ...[...policy.clusterRoleBindings, ...(isOkd ? [SELF_PROVISIONERS] : [])].map((binding) =>
      ensureObject(
        context,
        'clusterrolebindings',
        RBAC,
        bindingToCreate(binding, (name) => storedBinding(context, name)),
        (stored) => reconcileBinding(binding, stored as typeof binding),
      ),
    ),
    ...(isOkd ? [] : [removeUnchanged(context, SELF_PROVISIONERS)]),
    ...policy.roleBindings.map((binding) =>
      ensureObject(context, 'rolebindings', RBAC, binding, (stored) =>
        reconcileBinding(binding, stored as typeof binding),
      ),
    ),
  ]);
}
