/**
 * Claims stay while a pod on a node uses them, volumes while they are bound: their finalizers go only then.
 * Source: pkg/controller/volume/{pvcprotection,pvprotection}.
 */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from 'kubernetes-types/core/v1';
import type { KubeObject } from '../../../api/meta/object.ts';
import { CLAIM_PROTECTION, VOLUME_PROTECTION } from '../../../api/volumes/protection.ts';
import { controllerOf } from '../ownership.ts';

/** Names of the claims that a pod names, or has for itself. */
export function claimNames({ metadata, spec }: Pod): string[] {
  return (spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim !== undefined) return [persistentVolumeClaim.claimName];
    return ephemeral === undefined ? [] : [`${metadata?.name ?? ''}-${name}`];
  });
}

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

export type ProtectionPlan = 'add' | 'remove' | 'keep';

function planFinalizer({ metadata }: KubeObject, finalizer: string, isUsed: boolean): ProtectionPlan {
  const isThere = metadata?.finalizers?.includes(finalizer) === true;
  if (metadata?.deletionTimestamp === undefined) return isThere ? 'keep' : 'add';
  return isThere && !isUsed ? 'remove' : 'keep';
}

/** `pods`: those that may use it. */
export function planClaim(claim: PersistentVolumeClaim, pods: readonly Pod[]): ProtectionPlan {
  return planFinalizer(
    claim,
    CLAIM_PROTECTION,
    pods.some((pod) => usesClaim(pod, claim)),
  );
}

export function planVolume(volume: PersistentVolume): ProtectionPlan {
  return planFinalizer(volume, VOLUME_PROTECTION, volume.status?.phase === 'Bound');
}

export function withPlan<T extends KubeObject>(object: T, finalizer: string, plan: 'add' | 'remove'): T {
  const others = (object.metadata?.finalizers ?? []).filter((each) => each !== finalizer);
  const finalizers = plan === 'add' ? [...others, finalizer] : others;
  return { ...object, metadata: { ...object.metadata, finalizers } };
}
