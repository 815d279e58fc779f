/**
 * Table of the volume types that the kubelet supports. Set-up, mounts, records, usage and expansion are derived from
 * it; a source that is not listed is rejected when its pod starts.
 */
import type { Volume } from '../../../api/generated/core/v1.ts';
import { ephemeral, persistentVolumeClaim } from './claim.ts';
import { configMap } from './config-map.ts';
import { csi } from './csi.ts';
import { downwardApi } from './downward-api.ts';
import { emptyDir } from './empty-dir.ts';
import { hostPath } from './host-path.ts';
import { image } from './image.ts';
import { iscsi } from './iscsi.ts';
import { local } from './local.ts';
import { nfs } from './nfs.ts';
import { projected } from './projected.ts';
import { secret } from './secret.ts';
import type { ClaimType, RecordedType, VolumeType } from './type.ts';

export const VOLUME_TYPES: readonly VolumeType[] = [
  hostPath,
  persistentVolumeClaim,
  ephemeral,
  emptyDir,
  configMap,
  secret,
  downwardApi,
  projected,
  csi,
  nfs,
  iscsi,
  image,
  local,
];

export const RECORDED_TYPES = VOLUME_TYPES.filter((type): type is RecordedType => type.way === 'recorded');

/** Type that the volume's source selects. Undefined when this node does not support it. */
export const typeOf = (volume: Volume): VolumeType | undefined =>
  VOLUME_TYPES.find(({ source }) => source !== undefined && isSet(volume, source));

/** Type of a volume that names a claim, otherwise undefined. */
export function claimTypeOf(volume: Volume): ClaimType | undefined {
  const type = typeOf(volume);
  return type?.way === 'claim' ? type : undefined;
}

const isSet = (volume: Volume, source: string): boolean =>
  (volume as Readonly<Record<string, unknown>>)[source] !== undefined;

const DURABLE = new Set<string>(
  RECORDED_TYPES.filter(({ durable }) => durable === true).flatMap(({ records }) => records),
);

/** Whether records of a kind must survive a power failure. */
export const isDurable = (kind: string): boolean => DURABLE.has(kind);

/** Error for a source that no type of the table supports. */
export const unsupportedSource = (source: string): Error =>
  new Error(`no volume plugin matched: ${source} volumes are not supported on this node`);
