/** Deletes expired bootstrap tokens. Source: k8s.io/kubernetes/pkg/controller/bootstrap/tokencleaner.go. */
import type { Secret } from '../../../api/generated/core/v1.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { deleteInMs, TOKEN_NAMESPACE, TOKEN_TYPE } from './plan.ts';

export const tokenCleanerController: ControllerSpec = {
  name: 'tokencleaner',
  reads: [resources.secrets],
  writes: [resources.secrets],
  prepare: (handle) => {
    const secrets = handle.informer(resources.secrets, {
      namespace: TOKEN_NAMESPACE,
      fieldSelector: `type=${TOKEN_TYPE}`,
    });
    const client = handle.writer(resources.secrets);
    return (scope) => {
      const queue = scope.queue(async (key) => {
        const secret = secrets.get(key);
        const inMs = secret === undefined ? undefined : deleteInMs(secret, handle.plan().nowMs);
        if (secret === undefined || inMs === undefined) return;
        if (inMs > 0) {
          queue.addAfter(key, inMs);
          return;
        }
        const { name = '', uid } = secret.metadata ?? {};
        await ignoreNotFound(() =>
          client.delete(name, TOKEN_NAMESPACE, uid === undefined ? {} : { preconditions: { uid } }),
        );
        handle.log.info('expired bootstrap token deleted', { secret: name });
      }, 1);
      const wake = (secret: Secret): void => queue.add(`${TOKEN_NAMESPACE}/${secret.metadata?.name ?? ''}`);
      scope.onChange(secrets, { added: wake, updated: wake });
    };
  },
};
