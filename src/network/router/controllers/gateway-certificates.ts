/**
 * Permits the hosts' routers to read exactly the secrets that listeners of Gateways reference: one Role with a binding
 * in each namespace that has such secrets.
 */
import type { Role } from '../../../api/generated/rbac/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { Informer } from '../../../client/types.ts';
import type { ControllerHandle } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';

const NAME = 'system:node-router:gateway-certificates';
const RBAC = 'rbac.authorization.k8s.io';
const NODES = { apiGroup: RBAC, kind: 'Group', name: 'system:nodes' };

export const gatewayCertificateRoles = (handle: ControllerHandle): Informer<Role> =>
  handle.informer(resources.roles, { fieldSelector: `metadata.name=${NAME}` });

/** Permits the hosts to read the Secrets that listeners name. `secrets` are `NAMESPACE/NAME` keys. */
export async function permitCertificates(
  handle: ControllerHandle,
  roles: Informer<Role>,
  secrets: readonly string[],
): Promise<void> {
  const wanted = Map.groupBy([...new Set(secrets)].sort(), (key) => key.slice(0, key.indexOf('/')));
  for (const { metadata } of roles.list()) {
    const { namespace = '' } = metadata ?? {};
    if (wanted.has(namespace)) continue;
    await ignoreNotFound(() => handle.writer(resources.roleBindings).delete(NAME, namespace));
    await ignoreNotFound(() => handle.writer(resources.roles).delete(NAME, namespace));
  }
  for (const [namespace, keys] of wanted) {
    const resourceNames = keys.map((key) => key.slice(namespace.length + 1));
    const rules = [{ apiGroups: [''], resources: ['secrets'], resourceNames, verbs: ['get', 'list', 'watch'] }];
    const present = roles.get(`${namespace}/${NAME}`);
    if (present?.rules?.[0]?.resourceNames?.join() === resourceNames.join()) continue;
    const metadata = { name: NAME, namespace };
    const apiVersion = `${RBAC}/v1`;
    await unlessDone(() => handle.writer(resources.roles).create({ apiVersion, kind: 'Role', metadata, rules }));
    if (present !== undefined)
      await ignoreNotFound(() => handle.writer(resources.roles).patch(NAME, namespace, 'merge', { rules }));
    const roleRef = { apiGroup: RBAC, kind: 'Role', name: NAME };
    await unlessDone(() =>
      handle
        .writer(resources.roleBindings)
        .create({ apiVersion, kind: 'RoleBinding', metadata, roleRef, subjects: [NODES] }),
    );
  }
}

/** Runs `create` and ignores the error that its namespace is terminating. */
async function unlessDone(create: () => Promise<unknown>): Promise<void> {
  try {
    await create();
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists') && !isApiError(error, 'NotFound')) throw error;
  }
}
