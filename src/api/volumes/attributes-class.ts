/** References to VolumeAttributesClasses. Source: KEP-3751. */
import type { PersistentVolume, PersistentVolumeClaim } from '../generated/core/v1.ts';

export const ATTRIBUTES_CLASS_PROTECTION = 'kubernetes.io/vac-protection';

/** `kubernetes-types` lacks the fields of KEP-3751. */
interface Named {
  readonly spec?: { readonly volumeAttributesClassName?: string };
  readonly status?: {
    readonly currentVolumeAttributesClassName?: string;
    readonly modifyVolumeStatus?: { readonly targetVolumeAttributesClassName?: string };
  };
}

export function attributesClassesOf(object: PersistentVolume | PersistentVolumeClaim): string[] {
  const { spec, status } = object as Named;
  const names = [
    spec?.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ];
  return names.filter((name) => name !== undefined && name !== '') as string[];
}
