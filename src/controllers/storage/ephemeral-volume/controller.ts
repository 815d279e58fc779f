/** Creates the claims of generic ephemeral volumes. */
import type { PersistentVolumeClaim, Pod } from '../../../api/generated/core/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { controllerOf } from '../../framework/core/ownership.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { planEphemeralClaims } from './plan.ts';

export const ephemeralVolumeController: ControllerSpec = {
  name: 'ephemeral-volume',
  eventSource: 'ephemeral_volume',
  reads: [resources.pods, resources.persistentVolumeClaims],
  writes: [resources.persistentVolumeClaims],
  prepare: (handle) => {
    const pods = handle.informer(resources.pods);
    const claims = handle.informer(resources.persistentVolumeClaims);
    const client = handle.writer(resources.persistentVolumeClaims);
    return (scope) => {
      const queue = scope.queue(async (key) => {
        const pod = pods.get(key);
        if (pod === undefined) return;
        const { namespace = '', name: podName = '' } = pod.metadata ?? {};
        const plan = planEphemeralClaims(pod, (name) => claims.get(`${namespace}/${name}`));
        for (const claim of plan.create) {
          try {
            await client.create(claim);
          } catch (error) {
            if (isApiError(error, 'AlreadyExists')) continue;
            const message = `ephemeral volume: create PVC ${claim.metadata?.name}: ${String(error)}`;
            handle.recorder.event(pod, 'Warning', 'ClaimCreationFailed', message);
            throw error;
          }
        }
        for (const name of plan.foreign) {
          const message = `PVC "${namespace}/${name}" was not created for pod "${namespace}/${podName}" (pod is not owner)`;
          handle.recorder.event(pod, 'Warning', 'ClaimNotOwned', message);
        }
      });
      const wake = (pod: Pod): void => {
        if (pod.spec?.volumes?.some(({ ephemeral }) => ephemeral !== undefined) === true) queue.add(objectKey(pod));
      };
      scope.onChange(pods, { added: wake });
      const wakeOwner = (claim: PersistentVolumeClaim): void => {
        const owner = controllerOf(claim);
        if (owner?.kind === 'Pod') queue.add(`${claim.metadata?.namespace ?? ''}/${owner.name}`);
      };
      scope.onChange(claims, { deleted: wakeOwner });
    };
  },
};
