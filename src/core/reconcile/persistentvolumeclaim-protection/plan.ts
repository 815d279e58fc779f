/** A deleted claim is kept while a pod on a node uses it. Source: pkg/controller/volume/pvcprotection. */
import type { PersistentVolumeClaim, Pod } from 'kubernetes-types/core/v1';
import { CLAIM_PROTECTION } from '../../../api/volumes/protection.ts';
import { controllerOf } from '../ownership.ts';
import { type ProtectionPlan, planFinalizer } from '../protection-finalizer.ts';

/** Only a pod on a node holds a claim: no other can come to use one that is being deleted. */
export function usesClaim(pod: Pod, claim: PersistentVolumeClaim): boolean {
  if ((pod.spec?.nodeName ?? '') === '') return false;
  const name = claim.metadata?.name ?? '';
  return (pod.spec?.volumes ?? []).some(({ name: volume, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim !== undefined) return persistentVolumeClaim.claimName === name;
    const isOwn = ephemeral !== undefined && name === `${pod.metadata?.name ?? ''}-${volume}`;
    return isOwn && controllerOf(claim)?.uid === pod.metadata?.uid;
  });
}

/** `pods`: those that may use it. */
export function planClaim(claim: PersistentVolumeClaim, pods: readonly Pod[]): ProtectionPlan {
  return planFinalizer(
    claim,
    CLAIM_PROTECTION,
    pods.some((pod) => usesClaim(pod, claim)),
  );
}
