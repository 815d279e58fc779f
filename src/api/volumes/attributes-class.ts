/** References to VolumeAttributesClasses. Source: KEP-3751. */
import type { PersistentVolume, PersistentVolumeClaim } from '../generated/core/v1.ts';

export const ATTRIBUTES_CLASS_PROTECTION = 'kubernetes.io/vac-protection';

export function attributesClassesOf(object: PersistentVolume | PersistentVolumeClaim): string[] {
  const { spec, status }: Pick<PersistentVolumeClaim, 'spec' | 'status'> = object;
  const names = [
    spec?.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ];
  return names.filter((name) => name !== undefined && name !== '') as string[];
}
