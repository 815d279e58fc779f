/** Keeps a deleted claim while a pod on a node uses it. Source: pkg/controller/volume/pvcprotection. */
import type { PersistentVolumeClaim, Pod } from '../../../api/generated/core/v1.ts';
import { CLAIM_PROTECTION } from '../../../api/volumes/protection.ts';
import { controllerOf } from '../../framework/core/ownership.ts';
import { type ProtectionPlan, planFinalizer } from '../../framework/core/protection-finalizer.ts';

/**
 * Whether a pod holds a claim. Pods without a node hold no claim, because they cannot start any more while the claim is
 * being deleted.
 */
export function usesClaim(pod: Pod, claim: PersistentVolumeClaim): boolean {
  if ((pod.spec?.nodeName ?? '') === '') return false;
  const name = claim.metadata?.name ?? '';
  return (pod.spec?.volumes ?? []).some(({ name: volume, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim !== undefined) return persistentVolumeClaim.claimName === name;
    const isOwn = ephemeral !== undefined && name === `${pod.metadata?.name ?? ''}-${volume}`;
    return isOwn && controllerOf(claim)?.uid === pod.metadata?.uid;
  });
}

/** @param pods Pods that may use the claim. */
export function planClaim(claim: PersistentVolumeClaim, pods: readonly Pod[]): ProtectionPlan {
  return planFinalizer(
    claim,
    CLAIM_PROTECTION,
    pods.some((pod) => usesClaim(pod, claim)),
  );
}
