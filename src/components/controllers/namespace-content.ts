/** What every namespace gets: the default service account and the cluster's CA. Plans in core/reconcile/{serviceaccount,rootca}. */
import type { Namespace } from 'kubernetes-types/core/v1';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { planRootCa, ROOT_CA_CONFIG_MAP } from '../../core/reconcile/rootca/plan.ts';
import { DEFAULT_SERVICE_ACCOUNT, planServiceAccount } from '../../core/reconcile/serviceaccount/plan.ts';
import type { ControllerSpec } from './framework.ts';
import { isNamespaceTerminating } from './pod-control.ts';

const nameOf = (namespace: Namespace): string => namespace.metadata?.name ?? '';

export const serviceAccountController: ControllerSpec = {
  name: 'serviceaccount',
  reads: [resources.namespaces, resources.serviceAccounts],
  writes: [resources.serviceAccounts],
  prepare: (handle) => {
    const namespaces = handle.informer(resources.namespaces);
    const accounts = handle.informer(resources.serviceAccounts);
    const client = handle.writer(resources.serviceAccounts);
    return (scope) => {
      const queue = scope.queue(async (name) => {
        const missing = planServiceAccount(namespaces.get(name), accounts.get(`${name}/${DEFAULT_SERVICE_ACCOUNT}`));
        if (missing !== undefined) await createUnlessThere(() => client.create(missing));
      }, 4);
      scope.onChange(namespaces, {
        added: (namespace) => queue.add(nameOf(namespace)),
        updated: (namespace) => queue.add(nameOf(namespace)),
      });
      scope.onChange(accounts, {
        deleted: (account) => {
          if (account.metadata?.name === DEFAULT_SERVICE_ACCOUNT) queue.add(account.metadata.namespace ?? '');
        },
      });
    };
  },
};

export const rootCaController: ControllerSpec = {
  name: 'root-ca-publisher',
  reads: [resources.namespaces, resources.configMaps],
  writes: [resources.configMaps],
  prepare: (handle) => {
    const namespaces = handle.informer(resources.namespaces);
    // Only the published maps are kept, not every config map of the cluster.
    const maps = handle.informer(resources.configMaps, { fieldSelector: `metadata.name=${ROOT_CA_CONFIG_MAP}` });
    const client = handle.writer(resources.configMaps);
    return (scope) => {
      const queue = scope.queue(async (name) => {
        const existing = maps.get(`${name}/${ROOT_CA_CONFIG_MAP}`);
        const plan = planRootCa(namespaces.get(name), existing, handle.deps.rootCaPem);
        if (plan.kind === 'create') await createUnlessThere(() => client.create(plan.configMap));
        else if (plan.kind === 'update') await client.update(plan.configMap);
      }, 4);
      scope.onChange(namespaces, {
        added: (namespace) => queue.add(nameOf(namespace)),
        updated: (namespace) => queue.add(nameOf(namespace)),
      });
      const wake = (map: { readonly metadata?: { readonly namespace?: string } }): void =>
        queue.add(map.metadata?.namespace ?? '');
      scope.onChange(maps, { updated: wake, deleted: wake });
    };
  },
};

async function createUnlessThere(create: () => Promise<unknown>): Promise<void> {
  try {
    await create();
  } catch (error) {
    if (isApiError(error, 'AlreadyExists') || isApiError(error, 'NotFound') || isNamespaceTerminating(error)) return;
    throw error;
  }
}
