/** What every cluster must have, written at start: namespaces, priority classes, the default policy, the `kubernetes` service. */
import type { Endpoints, Namespace, Service } from 'kubernetes-types/core/v1';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import type { PriorityClass } from 'kubernetes-types/scheduling/v1';
import type { KubeObject } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import { bootstrapPolicy, reconcileBinding, reconcileRole } from '../../../core/authz/index.ts';
import type { RestContext } from '../rest/context.ts';
import { createObject } from '../rest/create.ts';
import { deleteObject } from '../rest/delete.ts';
import { updateObject } from '../rest/update.ts';
import type { WriteRequest } from '../rest/write-request.ts';

const OWN: UserInfo = { name: 'system:apiserver', groups: ['system:masters', 'system:authenticated'] };
const RBAC = 'rbac.authorization.k8s.io';

const NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease', 'openshift-infra', 'openshift-node'];

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

export function ownRequest(
  context: RestContext,
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
    options: { dryRun: false, validation: 'Ignore', fieldManager: 'kube-apiserver', force: false },
    warnings: [],
  };
}

async function ensure(
  context: RestContext,
  plural: string,
  group: string,
  object: KubeObject,
  reconcile?: (stored: KubeObject) => KubeObject | 'replace' | undefined,
): Promise<void> {
  const { name = '', namespace = '' } = object.metadata ?? {};
  const request = ownRequest(context, plural, group, namespace, name);
  const cached = request.kind.cache?.get(namespace, name);
  if (cached === undefined) {
    try {
      await createObject(context, request, structuredClone(object));
    } catch (error) {
      // Another API server starts at the same time.
      if (!isApiError(error, 'AlreadyExists')) throw error;
    }
    return;
  }
  if (reconcile === undefined) return;
  const mended = reconcile(cached.parse());
  if (mended === undefined) return;
  if (mended === 'replace') {
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

/** Writes what is missing and mends what is incomplete. Everything that does not depend on another goes at once, into few commits. */
export async function bootstrap(context: RestContext): Promise<void> {
  await Promise.all(NAMESPACES.map((name) => ensure(context, 'namespaces', '', { metadata: { name } } as Namespace)));
  await Promise.all([
    ...PRIORITY_CLASSES.map((each) => ensure(context, 'priorityclasses', 'scheduling.k8s.io', each)),
    ...bootstrapPolicy.clusterRoles.map((role) =>
      ensure(context, 'clusterroles', RBAC, role, (stored) => reconcileRole(role, stored as typeof role)),
    ),
    ...bootstrapPolicy.roles.map((role) =>
      ensure(context, 'roles', RBAC, role, (stored) => reconcileRole(role, stored as typeof role)),
    ),
    ...bootstrapPolicy.clusterRoleBindings.map((binding) =>
      ensure(context, 'clusterrolebindings', RBAC, binding, (stored) =>
        reconcileBinding(binding, stored as typeof binding),
      ),
    ),
    ...bootstrapPolicy.roleBindings.map((binding) =>
      ensure(context, 'rolebindings', RBAC, binding, (stored) => reconcileBinding(binding, stored as typeof binding)),
    ),
  ]);
}

const HTTPS_PORT = 443;
const LOOPBACK = /^(?:127\.|::1$)/;

/**
 * The `kubernetes` service and where it leads. One server replaces the addresses; with several, each adds its own and leaves those of
 * the others (which of them are gone is for the controller that watches the masters to say).
 */
export async function publishSelf(context: RestContext, port: number): Promise<void> {
  const service: Service = {
    metadata: { name: 'kubernetes', namespace: 'default', labels: { component: 'apiserver', provider: 'kubernetes' } },
    spec: {
      type: 'ClusterIP',
      clusterIP: context.services.firstAddress,
      ports: [{ name: 'https', port: HTTPS_PORT, protocol: 'TCP', targetPort: port }],
      sessionAffinity: 'None',
    },
  };
  await ensure(context, 'services', '', service, (stored) => withPort(stored as Service, port));
  const address = context.config.advertiseAddress;
  // Nobody else reaches a loopback address, and end points must not have one: a control plane for tests has a service alone.
  if (LOOPBACK.test(address)) return;
  const merged = (known: readonly string[]): string[] =>
    context.config.soleWriter ? [address] : [...new Set([...known, address])].sort();
  const metadata = { name: 'kubernetes', namespace: 'default' };
  const ports = [{ name: 'https', port, protocol: 'TCP' as const }];
  const endpoints = (known: readonly string[]): Endpoints => ({
    metadata: { ...metadata, labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
    subsets: [{ addresses: merged(known).map((ip) => ({ ip })), ports }],
  });
  await ensure(context, 'endpoints', '', endpoints([]), (stored) => {
    const known = (stored as Endpoints).subsets?.flatMap((subset) => (subset.addresses ?? []).map((each) => each.ip));
    const wanted = endpoints(known ?? []);
    return { ...stored, subsets: wanted.subsets } as KubeObject;
  });
  const slice = (known: readonly string[]): EndpointSlice => ({
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: address.includes(':') ? 'IPv6' : 'IPv4',
    endpoints: merged(known).map((each) => ({ addresses: [each], conditions: { ready: true } })),
    ports,
  });
  await ensure(context, 'endpointslices', 'discovery.k8s.io', slice([]), (stored) => {
    const known = (stored as EndpointSlice).endpoints.flatMap((endpoint) => endpoint.addresses);
    const { endpoints: wanted } = slice(known);
    return { ...stored, endpoints: wanted, ports } as KubeObject;
  });
}

function withPort(service: Service, port: number): Service | undefined {
  const [first] = service.spec?.ports ?? [];
  if (first?.targetPort === port && first.port === HTTPS_PORT) return undefined;
  return {
    ...service,
    spec: { ...service.spec, ports: [{ name: 'https', port: HTTPS_PORT, protocol: 'TCP', targetPort: port }] },
  };
}
