/**
 * Rejects the expansion of claims whose storage class does not allow it, and protects claims and volumes in use.
 * Sources: plugin/pkg/admission/storage/{persistentvolume/resize,storageobjectinuseprotection}.
 */
import type { PersistentVolumeClaim } from '../../../api/generated/core/v1.ts';
import type { StorageClass } from '../../../api/generated/storage/v1.ts';
import { CLAIM_PROTECTION, VOLUME_PROTECTION } from '../../../api/volumes/protection.ts';
import { compareQuantity, tryParseQuantity } from '../../../base/quantity.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, isFor } from '../subject.ts';

const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

export function persistentVolumeClaimResize(classes: (name: string) => CachedObject | undefined): AdmissionPlugin {
  const classOf = ({ metadata, spec }: PersistentVolumeClaim): string =>
    metadata?.annotations?.[CLASS_ANNOTATION] ?? spec?.storageClassName ?? '';
  const sizeOf = ({ spec }: PersistentVolumeClaim) => tryParseQuantity(spec?.resources?.requests?.['storage']);
  return {
    name: 'PersistentVolumeClaimResize',
    resources: ['persistentvolumeclaims'],
    validate(request) {
      if (request.operation !== 'UPDATE' || request.subresource !== '') return;
      if (!isFor(request, '', 'persistentvolumeclaims')) return;
      const now = request.object as PersistentVolumeClaim;
      const old = request.old as PersistentVolumeClaim;
      const [size, before] = [sizeOf(now), sizeOf(old)];
      if (size === undefined || (before !== undefined && compareQuantity(size, before) <= 0)) return;
      if (old.status?.phase !== 'Bound') {
        throw forbid(request, 'Only bound persistent volume claims can be expanded');
      }
      const name = classOf(now);
      const found = name === '' || name !== classOf(old) ? undefined : classes(name)?.shared<StorageClass>();
      if (found?.allowVolumeExpansion !== true) {
        throw forbid(
          request,
          'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
        );
      }
    },
  };
}

/** Adds finalizers to new claims and volumes. The protection controllers remove them once no pod uses the object. */
export const storageObjectInUseProtection: AdmissionPlugin = {
  name: 'StorageObjectInUseProtection',
  resources: ['persistentvolumeclaims', 'persistentvolumes'],
  mutate(request) {
    const { object, operation, subresource } = request;
    if (operation !== 'CREATE' || subresource !== '' || object === undefined) return;
    const finalizer = isFor(request, '', 'persistentvolumeclaims')
      ? CLAIM_PROTECTION
      : isFor(request, '', 'persistentvolumes')
        ? VOLUME_PROTECTION
        : undefined;
    const present = object.metadata?.finalizers ?? [];
    if (finalizer === undefined || present.includes(finalizer)) return;
    object.metadata = { ...object.metadata, finalizers: [...present, finalizer] };
  },
};
