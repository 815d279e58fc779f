/** Fills secrets that request a service account token, and deletes them with the account. */
import type { Secret, ServiceAccount } from '../../../api/generated/core/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { ResourceClient } from '../../../client/types.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { accountOf, planTokenSecret, TOKEN_SECRET_TYPE, withoutSecret } from './plan.ts';

/** Key of the account that a token secret names. */
const accountKeys = (secret: Secret): string[] => {
  const name = accountOf(secret);
  return name === undefined ? [] : [`${secret.metadata?.namespace ?? ''}/${name}`];
};

const keyOf = ({ metadata }: Secret): string => `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`;

export const tokenSecretController: ControllerSpec = {
  name: 'serviceaccount-token',
  reads: [resources.secrets, resources.serviceAccounts],
  writes: [resources.secrets, resources.serviceAccounts],
  uses: ['rootCaPem', 'signServiceAccountToken'],
  prepare: (handle) => {
    const secrets = handle.informer(resources.secrets, { fieldSelector: `type=${TOKEN_SECRET_TYPE}` });
    const accounts = handle.informer(resources.serviceAccounts);
    handle.addIndex(secrets, 'account', accountKeys);
    const client = handle.writer(resources.secrets);
    const accountClient = handle.writer(resources.serviceAccounts);
    const facts = { caPem: handle.use('rootCaPem'), sign: handle.use('signServiceAccountToken') };

    async function forget(key: string): Promise<void> {
      const [namespace = '', name = ''] = key.split('/');
      for (const account of accounts.list(namespace)) {
        const without = withoutSecret(account, name);
        if (without !== undefined) await accountClient.update(without).catch(ignoreNotFound);
      }
    }

    async function reconcile(key: string): Promise<void> {
      const secret = secrets.get(key);
      if (secret === undefined) {
        await forget(key);
        return;
      }
      const namespace = secret.metadata?.namespace ?? '';
      const name = accountOf(secret);
      if (name === undefined) return;
      let account = accounts.get(`${namespace}/${name}`);
      let plan = planTokenSecret(secret, account, facts);
      if (plan.kind === 'delete') {
        // The account is read live before a deletion, because the local copy may be behind.
        account = await current(accountClient, name, namespace);
        plan = planTokenSecret(secret, account, facts);
      }
      if (plan.kind === 'update') await client.update(plan.secret);
      else if (plan.kind === 'delete')
        await client
          .delete(secret.metadata?.name ?? '', namespace, {
            ...(secret.metadata?.uid === undefined ? {} : { preconditions: { uid: secret.metadata.uid } }),
          })
          .catch(ignoreNotFound);
    }

    return (scope) => {
      const queue = scope.queue(reconcile, 2);
      const wake = (secret: Secret): void => queue.add(keyOf(secret));
      scope.onChange(secrets, { added: wake, updated: wake, deleted: wake });
      const wakeThoseOf = ({ metadata }: ServiceAccount): void => {
        for (const secret of secrets.byIndex('account', `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`))
          wake(secret);
      };
      scope.onChange(accounts, { added: wakeThoseOf, deleted: wakeThoseOf });
    };
  },
};

async function current(
  client: ResourceClient<ServiceAccount>,
  name: string,
  namespace: string,
): Promise<ServiceAccount | undefined> {
  try {
    return await client.get(name, namespace);
  } catch (error) {
    ignoreNotFound(error);
    return undefined;
  }
}

function ignoreNotFound(error: unknown): void {
  if (!isApiError(error, 'NotFound')) throw error;
}
