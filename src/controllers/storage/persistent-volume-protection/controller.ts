/** Removes the protection finalizer of deleted volumes once no claim is bound to them. */
import { resources } from '../../../api/resources.ts';
import { VOLUME_PROTECTION } from '../../../api/volumes/protection.ts';
import { withPlannedFinalizer } from '../../framework/core/protection-finalizer.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { planVolume } from './plan.ts';

export const volumeProtectionController: ControllerSpec = {
  name: 'pv-protection',
  reads: [resources.persistentVolumes],
  writes: [resources.persistentVolumes],
  prepare: (handle) => {
    const volumes = handle.informer(resources.persistentVolumes);
    const client = handle.writer(resources.persistentVolumes);
    return (scope) => {
      const queue = scope.queue(async (name) => {
        const volume = volumes.get(name);
        const plan = volume === undefined ? 'keep' : planVolume(volume);
        if (volume === undefined || plan === 'keep') return;
        await ignoreNotFound(() => client.update(withPlannedFinalizer(volume, VOLUME_PROTECTION, plan)));
      }, 2);
      const wake = ({ metadata }: { readonly metadata?: { readonly name?: string } }): void =>
        queue.add(metadata?.name ?? '');
      scope.onChange(volumes, { added: wake, updated: wake });
    };
  },
};
