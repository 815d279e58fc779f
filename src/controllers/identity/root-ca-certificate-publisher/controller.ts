/** Publishes the cluster CA as config map `kube-root-ca.crt` in every namespace. */
import type { Namespace } from '../../../api/generated/core/v1.ts';
import { resources } from '../../../api/resources.ts';
import { createUnlessPresent } from '../../framework/create-unless-present.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { planRootCa, ROOT_CA_CONFIG_MAP } from './plan.ts';

const nameOf = (namespace: Namespace): string => namespace.metadata?.name ?? '';

export const rootCaController: ControllerSpec = {
  name: 'root-ca-publisher',
  reads: [resources.namespaces, resources.configMaps],
  writes: [resources.configMaps],
  uses: ['rootCaPem'],
  prepare: (handle) => {
    const namespaces = handle.informer(resources.namespaces);
    // The informer holds only the published maps, not every config map of the cluster.
    const maps = handle.informer(resources.configMaps, { fieldSelector: `metadata.name=${ROOT_CA_CONFIG_MAP}` });
    const client = handle.writer(resources.configMaps);
    const rootCaPem = handle.use('rootCaPem');
    return (scope) => {
      const queue = scope.queue(async (name) => {
        const existing = maps.get(`${name}/${ROOT_CA_CONFIG_MAP}`);
        const plan = planRootCa(namespaces.get(name), existing, rootCaPem);
        if (plan.kind === 'create') await createUnlessPresent(() => client.create(plan.configMap));
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
