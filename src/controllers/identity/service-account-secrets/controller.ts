/** Creates the secrets of each service account, if enabled. */
import type { ServiceAccount } from '../../../api/generated/core/v1.ts';
import { resources } from '../../../api/resources.ts';
import { createUnlessPresent } from '../../framework/create-unless-present.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { planAccountSecrets } from './plan.ts';

const keyOf = ({ metadata }: ServiceAccount): string => `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`;

export const accountSecretsController: ControllerSpec = {
  name: 'serviceaccount-secrets',
  reads: [resources.serviceAccounts, resources.namespaces],
  writes: [resources.serviceAccounts, resources.secrets],
  prepare: (handle) => {
    const accounts = handle.informer(resources.serviceAccounts);
    const namespaces = handle.informer(resources.namespaces);
    const accountClient = handle.writer(resources.serviceAccounts);
    const secretClient = handle.writer(resources.secrets);
    return (scope) => {
      if (!handle.options.accountSecrets) return;
      const queue = scope.queue(async (key) => {
        const account = accounts.get(key);
        const namespace = namespaces.get(account?.metadata?.namespace ?? '');
        // No objects can be created in a terminating namespace.
        if (account === undefined || namespace?.metadata?.deletionTimestamp !== undefined) return;
        const plan = planAccountSecrets(account);
        if (plan === undefined) return;
        for (const secret of plan.secrets) await createUnlessPresent(() => secretClient.create(secret));
        await ignoreNotFound(() => accountClient.update(plan.account));
      }, 2);
      scope.onChange(accounts, {
        added: (account) => queue.add(keyOf(account)),
        updated: (account) => queue.add(keyOf(account)),
      });
    };
  },
};
