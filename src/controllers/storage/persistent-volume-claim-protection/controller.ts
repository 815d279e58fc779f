/** Removes the protection finalizer of deleted claims once no pod on a node uses them. */
import type { PersistentVolumeClaim, Pod } from '../../../api/generated/core/v1.ts';
import { resources } from '../../../api/resources.ts';
import { claimNames } from '../../../api/volumes/pod-claims.ts';
import { CLAIM_PROTECTION } from '../../../api/volumes/protection.ts';
import { withPlannedFinalizer } from '../../framework/core/protection-finalizer.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { indexByClaim, podsWithClaim } from '../../framework/owner-indices.ts';
import { planClaim } from './plan.ts';

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
          // The pods are read live, because a pod may have just been scheduled to a node. Removing its claim would lose
          // data.
          const { items } = await podClient.list({ namespace: claim.metadata?.namespace ?? '' });
          if (planClaim(claim, items) === 'keep') return;
        }
        await ignoreNotFound(() => client.update(withPlannedFinalizer(claim, CLAIM_PROTECTION, plan)));
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
