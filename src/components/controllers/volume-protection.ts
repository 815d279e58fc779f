/** Keeps claims and volumes that are deleted until nobody uses them. Plans in core/reconcile/protection. */
import type { PersistentVolumeClaim, Pod } from 'kubernetes-types/core/v1';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { CLAIM_PROTECTION, VOLUME_PROTECTION } from '../../api/volumes/protection.ts';
import { claimNames, planClaim, planVolume, withPlan } from '../../core/reconcile/protection/plan.ts';
import type { ControllerSpec } from './framework.ts';
import { indexByClaim, podsWithClaim } from './indices.ts';

const keyOf = ({ metadata }: PersistentVolumeClaim): string => `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`;

export const claimProtectionController: ControllerSpec = {
  name: 'pvc-protection',
  reads: [resources.persistentVolumeClaims, resources.pods],
  writes: [resources.persistentVolumeClaims, resources.pods],
  prepare: (handle) => {
    const claims = handle.informer(resources.persistentVolumeClaims);
    const pods = handle.informer(resources.pods);
    indexByClaim(pods);
    const client = handle.writer(resources.persistentVolumeClaims);
    const podClient = handle.writer(resources.pods);
    return (scope) => {
      const queue = scope.queue(async (key) => {
        const claim = claims.get(key);
        if (claim === undefined) return;
        const plan = planClaim(claim, podsWithClaim(pods, key));
        if (plan === 'keep') return;
        if (plan === 'remove') {
          // A pod may have come to a node a moment ago: a volume that is taken away from it is data lost.
          const { items } = await podClient.list({ namespace: claim.metadata?.namespace ?? '' });
          if (planClaim(claim, items) === 'keep') return;
        }
        await ignoreGone(() => client.update(withPlan(claim, CLAIM_PROTECTION, plan)));
      }, 3);
      const wake = (claim: PersistentVolumeClaim): void => queue.add(keyOf(claim));
      scope.onChange(claims, { added: wake, updated: wake });
      const wakeClaimsOf = (pod: Pod): void => {
        for (const name of claimNames(pod)) queue.add(`${pod.metadata?.namespace ?? ''}/${name}`);
      };
      scope.onChange(pods, { deleted: wakeClaimsOf });
    };
  },
};

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
        await ignoreGone(() => client.update(withPlan(volume, VOLUME_PROTECTION, plan)));
      }, 2);
      const wake = ({ metadata }: { readonly metadata?: { readonly name?: string } }): void =>
        queue.add(metadata?.name ?? '');
      scope.onChange(volumes, { added: wake, updated: wake });
    };
  },
};

async function ignoreGone(write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
  }
}
