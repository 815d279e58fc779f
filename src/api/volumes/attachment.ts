/**
 * Names by which the kubelet and the attach-detach controller agree. Source: pkg/volume/csi, pkg/volume/iscsi,
 * pkg/volume/fc, pkg/volume/util.
 */
import type {
  FCVolumeSource,
  ISCSIPersistentVolumeSource,
  ISCSIVolumeSource,
  PersistentVolume,
  PersistentVolumeSpec,
  Pod,
  Volume,
} from 'kubernetes-types/core/v1';

/** In `node.status.volumesAttached` and `volumesInUse`. */
export const uniqueVolumeName = (driver: string, volumeId: string): string => `kubernetes.io/csi/${driver}^${volumeId}`;

type IscsiDisk = Pick<ISCSIVolumeSource & ISCSIPersistentVolumeSource, 'targetPortal' | 'iqn' | 'lun'>;

export const uniqueIscsiName = ({ targetPortal, iqn, lun }: IscsiDisk): string =>
  `kubernetes.io/iscsi/${targetPortal}:${iqn}:${lun}`;

/** Go's notation of lists is part of upstream's names. */
function uniqueFibreChannelName({ targetWWNs = [], lun, wwids = [] }: FCVolumeSource): string {
  const list = (values: readonly string[]): string => `[${values.join(' ')}]`;
  return `kubernetes.io/fc/${targetWWNs.length > 0 ? `${list(targetWWNs)}:${lun ?? 0}` : list(wwids)}`;
}

/** A CSI volume is attached by its driver; of the others the controller only records the node. */
export const isCsiName = (unique: string): boolean => unique.startsWith('kubernetes.io/csi/');

export const isInTreeName = (unique: string): boolean => /^kubernetes\.io\/(?:iscsi|fc)\//.test(unique);

/** Undefined: the source needs no attachment to a node. */
export function uniqueNameOf({ csi, iscsi, fc }: PersistentVolumeSpec): string | undefined {
  if (csi !== undefined) return uniqueVolumeName(csi.driver, csi.volumeHandle);
  if (iscsi !== undefined) return uniqueIscsiName(iscsi);
  return fc === undefined ? undefined : uniqueFibreChannelName(fc);
}

/** As `uniqueNameOf`, for a volume that a pod names without a claim. Inline volumes of CSI drivers are not attached. */
export function uniqueInlineName({ iscsi, fc }: Volume): string | undefined {
  if (iscsi !== undefined) return uniqueIscsiName(iscsi);
  return fc === undefined ? undefined : uniqueFibreChannelName(fc);
}

export const uniqueInlineNames = ({ spec }: Pod): string[] =>
  (spec?.volumes ?? []).flatMap((volume) => uniqueInlineName(volume) ?? []);

/** Whether a volume may be attached to one node only. Source: pkg/volume/util IsMultiAttachAllowed. */
export const isForOneNode = ({ spec }: PersistentVolume): boolean =>
  spec?.accessModes?.some((mode) => mode === 'ReadWriteMany' || mode === 'ReadOnlyMany') !== true;

/**
 * Whether an inline volume may be attached to one node only. Stricter than upstream: the node mounts these disks with
 * file systems for one writer.
 */
export const isInlineForOneNode = ({ iscsi, fc }: Volume): boolean => (iscsi ?? fc)?.readOnly !== true;

/** `sha256`: the digest in hexadecimal. */
export const attachmentNameOf = (
  volumeId: string,
  driver: string,
  node: string,
  sha256: (text: string) => string,
): string => `csi-${sha256(`${volumeId}${driver}${node}`)}`;

/** The name of the VolumeAttachment of a CSI volume and a node. */
export function attachmentNameOfUnique(unique: string, node: string, sha256: (text: string) => string): string {
  const [driver = '', ...handle] = unique.slice('kubernetes.io/csi/'.length).split('^');
  return attachmentNameOf(handle.join('^'), driver, node, sha256);
}
