/** Expands volumes to the size that their claims request. */
import type { PersistentVolume, PersistentVolumeClaim } from '../../../api/generated/core/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { planExpansion } from './plan.ts';

/** Maximum number of writes per sync. An expansion takes three writes. */
const MAX_STEPS = 5;

export const volumeExpanderController: ControllerSpec = {
  name: 'persistentvolume-expander',
  eventSource: 'volume_expand',
  reads: [resources.persistentVolumes, resources.persistentVolumeClaims],
  writes: [resources.persistentVolumes, resources.persistentVolumeClaims],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const volumes = handle.informer(resources.persistentVolumes);
  const claims = handle.informer(resources.persistentVolumeClaims);
  const volumeClient = handle.writer(resources.persistentVolumes);
  const claimClient = handle.writer(resources.persistentVolumeClaims);

  async function expand(first: PersistentVolumeClaim): Promise<void> {
    let claim = first;
    let volume = volumes.get(claim.spec?.volumeName ?? '');
    for (let step = 0; step < MAX_STEPS; step++) {
      const plan = planExpansion(claim, volume, handle.plan().nowMs);
      if (plan.kind === 'keep') return;
      if (plan.kind === 'event') {
        handle.recorder.event(claim, 'Normal', plan.reason, plan.message);
        return;
      }
      if (plan.kind === 'volume') volume = await volumeClient.update(plan.volume);
      else {
        const { name = '', namespace, uid, resourceVersion } = claim.metadata ?? {};
        // The patch replaces all conditions, so it must not overwrite a newer claim.
        const body = { metadata: { uid, resourceVersion }, status: plan.status };
        claim = await claimClient.patch(name, namespace, 'merge', body, { subresource: 'status' });
      }
    }
  }

  return (scope) => {
    const queue = scope.queue(async (key) => {
      const claim = claims.get(key);
      if (claim !== undefined) await ignoreNotFound(() => expand(claim));
    }, 2);
    const requested = ({ spec }: PersistentVolumeClaim): string => spec?.resources?.requests?.['storage'] ?? '';
    const wake = (claim: PersistentVolumeClaim): void => {
      if (claim.status?.phase === 'Bound' && requested(claim) !== claim.status.capacity?.['storage']) {
        queue.add(objectKey(claim));
      }
    };
    scope.onChange(claims, {
      added: wake,
      updated: (claim, old) => {
        if (requested(claim) !== requested(old) || claim.status?.phase !== old.status?.phase) wake(claim);
      },
    });
    scope.onChange(volumes, {
      updated: ({ spec }: PersistentVolume) => {
        const claim = claims.get(`${spec?.claimRef?.namespace ?? ''}/${spec?.claimRef?.name ?? ''}`);
        if (claim !== undefined) wake(claim);
      },
    });
  };
}
