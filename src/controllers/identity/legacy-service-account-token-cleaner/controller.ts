/** Removes unused legacy tokens of service accounts. */
import { resources } from '../../../api/resources.ts';
import { attemptAll } from '../../framework/attempt-all.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { INVALID_SINCE, planLegacyToken, TOKEN_SECRET_TYPE, TRACKING } from './plan.ts';

const INTERVAL_MS = 24 * 3_600_000;
/** Delay of the first run. By then the informers of other controllers are filled. */
const FIRST_MS = 60_000;

export const legacyTokenCleanerController: ControllerSpec = {
  name: 'legacy-serviceaccount-token-cleaner',
  reads: [resources.pods, resources.serviceAccounts, resources.secrets],
  writes: [resources.secrets, resources.configMaps],
  prepare: (handle) => {
    const pods = handle.informer(resources.pods);
    const accounts = handle.informer(resources.serviceAccounts);
    const secrets = handle.informer(resources.secrets, { fieldSelector: `type=${TOKEN_SECRET_TYPE}` });
    const client = handle.writer(resources.secrets);
    const maps = handle.writer(resources.configMaps);
    const clean = async (): Promise<void> => {
      if (secrets.list().length === 0) return;
      const since = (await maps.get(TRACKING.name, TRACKING.namespace)).data?.['since'];
      const snapshot = {
        since,
        pods: pods.list(),
        account: (namespace: string, name: string) => accounts.get(`${namespace}/${name}`),
      };
      await attemptAll(secrets.list(), async (secret) => {
        const plan = planLegacyToken(secret, snapshot, handle.plan().nowMs);
        if (plan.kind === 'keep') return;
        const { name = '', namespace, uid = '', resourceVersion = '' } = secret.metadata ?? {};
        await ignoreNotFound(() =>
          plan.kind === 'delete'
            ? client.delete(name, namespace, { preconditions: { uid, resourceVersion } })
            : client.patch(name, namespace, 'merge', {
                metadata: { resourceVersion, labels: { [INVALID_SINCE]: plan.day } },
              }),
        );
        handle.log.info(plan.kind === 'delete' ? 'legacy token deleted' : 'legacy token invalidated', {
          secret: `${namespace}/${name}`,
        });
      });
    };
    return (scope) => {
      scope.after(FIRST_MS, clean);
      scope.every(INTERVAL_MS, clean);
    };
  },
};
