import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '../../api/generated/core/v1.ts';

/** Volume of a pod and the PersistentVolume of its claim. */
export interface VolumeRequest {
  readonly pod: Pod;
  readonly volume: Volume;
  readonly persistent?: PersistentVolume;
  readonly claim?: PersistentVolumeClaim;
}

/** Name used in paths and messages: the PersistentVolume's, otherwise the volume's in the pod. */
export const nameOf = ({ persistent, volume }: VolumeRequest): string => persistent?.metadata?.name ?? volume.name;

export const isReadOnly = ({ volume }: VolumeRequest): boolean =>
  volume.persistentVolumeClaim?.readOnly === true || volume.csi?.readOnly === true;

export const isBlock = ({ persistent }: VolumeRequest): boolean => persistent?.spec?.volumeMode === 'Block';

export const claimKeyOf = ({ claim }: VolumeRequest): string | undefined =>
  claim === undefined ? undefined : `${claim.metadata?.namespace ?? ''}/${claim.metadata?.name ?? ''}`;
