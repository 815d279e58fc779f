/** Ensures the service account `default` in every namespace. */
import type { Namespace } from '../../../api/generated/core/v1.ts';
import { resources } from '../../../api/resources.ts';
import { createUnlessPresent } from '../../framework/create-unless-present.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { DEFAULT_SERVICE_ACCOUNT, planServiceAccount } from './plan.ts';

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
        if (missing !== undefined) await createUnlessPresent(() => client.create(missing));
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
