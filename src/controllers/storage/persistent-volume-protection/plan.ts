/** Keeps a deleted volume while a claim is bound to it. Source: pkg/controller/volume/pvprotection. */
import type { PersistentVolume } from '../../../api/generated/core/v1.ts';
import { VOLUME_PROTECTION } from '../../../api/volumes/protection.ts';
import { type ProtectionPlan, planFinalizer } from '../../framework/core/protection-finalizer.ts';

export function planVolume(volume: PersistentVolume): ProtectionPlan {
  return planFinalizer(volume, VOLUME_PROTECTION, volume.status?.phase === 'Bound');
}
