/** Maintains the Endpoints object of each service that has a selector. */
import { objectKey, splitKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { followBackends, podsBehind, unlessTerminating } from '../service-backends/controller.ts';
import { hasManagedBackends } from '../service-backends/plan.ts';
import { planEndpoints } from './plan.ts';

export const endpointsController: ControllerSpec = {
  name: 'endpoints',
  reads: [resources.services, resources.pods, resources.endpoints],
  writes: [resources.endpoints],
  prepare: (handle) => {
    const services = handle.informer(resources.services);
    const pods = handle.informer(resources.pods);
    const endpoints = handle.informer(resources.endpoints);
    const client = handle.writer(resources.endpoints);
    return (scope) => {
      const queue = scope.queue(async (key) => {
        const service = services.get(key);
        if (service === undefined) {
          await removeOrphan(key);
          return;
        }
        if (!hasManagedBackends(service) || service.metadata?.deletionTimestamp !== undefined) return;
        const plan = planEndpoints(service, podsBehind(service, pods), endpoints.get(key));
        if (plan.kind === 'create') await unlessTerminating(() => client.create(plan.endpoints));
        else if (plan.kind === 'update') await client.update(plan.endpoints);
      }, 5);
      followBackends(scope, queue, services, pods);
      // Old leader election stored its record in Endpoints without a service. Such objects are not queued when they are
      // added, so that they are not removed.
      scope.onChange(endpoints, { deleted: (each) => queue.add(objectKey(each)) });
    };

    /** Deletes the Endpoints of a deleted service. */
    async function removeOrphan(key: string): Promise<void> {
      const existing = endpoints.get(key);
      if (existing?.metadata?.labels?.['endpoints.kubernetes.io/managed-by'] !== 'endpoint-controller') return;
      const { name, namespace } = splitKey(key);
      try {
        const uid = existing.metadata.uid;
        await client.delete(name, namespace, uid === undefined ? {} : { preconditions: { uid } });
      } catch (error) {
        if (!isApiError(error, 'NotFound')) throw error;
      }
    }
  },
};
