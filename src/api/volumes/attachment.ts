/**
 * Names of volumes and attachments on which the kubelet and the attach-detach controller agree. Source: pkg/volume/csi,
 * pkg/volume/iscsi, pkg/volume/fc, pkg/volume/util.
 */
import type {
  FCVolumeSource,
  ISCSIPersistentVolumeSource,
  ISCSIVolumeSource,
  PersistentVolume,
  PersistentVolumeSpec,
  Pod,
  Volume,
} from '../generated/core/v1.ts';

/** Unique name of a CSI volume in `node.status.volumesAttached` and `volumesInUse`. */
export const uniqueVolumeName = (driver: string, volumeId: string): string => `kubernetes.io/csi/${driver}^${volumeId}`;

type IscsiDisk = Pick<ISCSIVolumeSource & ISCSIPersistentVolumeSource, 'targetPortal' | 'iqn' | 'lun'>;

export const uniqueIscsiName = ({ targetPortal, iqn, lun }: IscsiDisk): string =>
  `kubernetes.io/iscsi/${targetPortal}:${iqn}:${lun}`;

/** Unique name of a Fibre Channel volume. As upstream, lists in the name have Go's notation. */
function uniqueFibreChannelName({ targetWWNs = [], lun, wwids = [] }: FCVolumeSource): string {
  const list = (values: readonly string[]): string => `[${values.join(' ')}]`;
  return `kubernetes.io/fc/${targetWWNs.length > 0 ? `${list(targetWWNs)}:${lun ?? 0}` : list(wwids)}`;
}

/** Whether the volume is attached by a CSI driver. For other volumes the controller only records the node. */
export const isCsiName = (unique: string): boolean => unique.startsWith('kubernetes.io/csi/');

export const isInTreeName = (unique: string): boolean => /^kubernetes\.io\/(?:iscsi|fc)\//.test(unique);

/** Unique name of a volume; undefined if it is not attached to nodes. */
export function uniqueNameOf({ csi, iscsi, fc }: PersistentVolumeSpec): string | undefined {
  if (csi !== undefined) return uniqueVolumeName(csi.driver, csi.volumeHandle);
  if (iscsi !== undefined) return uniqueIscsiName(iscsi);
  return fc === undefined ? undefined : uniqueFibreChannelName(fc);
}

/** Like `uniqueNameOf`, for a volume in a pod spec. Inline CSI volumes are not attached. */
export function uniqueInlineName({ iscsi, fc }: Volume): string | undefined {
  if (iscsi !== undefined) return uniqueIscsiName(iscsi);
  return fc === undefined ? undefined : uniqueFibreChannelName(fc);
}

export const uniqueInlineNames = ({ spec }: Pod): string[] =>
  (spec?.volumes ?? []).flatMap((volume) => uniqueInlineName(volume) ?? []);

/** Whether the volume may be attached to one node only. Source: pkg/volume/util IsMultiAttachAllowed. */
export const isForOneNode = ({ spec }: PersistentVolume): boolean =>
  spec?.accessModes?.some((mode) => mode === 'ReadWriteMany' || mode === 'ReadOnlyMany') !== true;

/**
 * Whether an inline volume may be attached to one node only. Stricter than upstream, because nodes mount these disks
 * with single-writer file systems.
 */
export const isInlineForOneNode = ({ iscsi, fc }: Volume): boolean => (iscsi ?? fc)?.readOnly !== true;

/** Name of the VolumeAttachment for a CSI volume and a node. `sha256` returns the digest in hex. */
export const attachmentNameOf = (
  volumeId: string,
  driver: string,
  node: string,
  sha256: (text: string) => string,
): string => `csi-${sha256(`${volumeId}${driver}${node}`)}`;

/** Like `attachmentNameOf`, for the unique name of a CSI volume. */
export function attachmentNameOfUnique(unique: string, node: string, sha256: (text: string) => string): string {
  const [driver = '', ...handle] = unique.slice('kubernetes.io/csi/'.length).split('^');
  return attachmentNameOf(handle.join('^'), driver, node, sha256);
}
