/** Volume capability in CSI terms. Source: pkg/volume/csi csi_client.go, csi_mounter.go. */
import type { Pod } from '../../../api/generated/core/v1.ts';
import type { CSIDriver } from '../../../api/generated/storage/v1.ts';
import type { VolumeRequest } from '../request.ts';
import type { CsiAccessMode, CsiNodeCapability, CsiVolumeCapability } from './port.ts';

type Capabilities = ReadonlySet<CsiNodeCapability>;

export const groupOf = (pod: Pod | undefined): number | undefined => pod?.spec?.securityContext?.fsGroup;

export function capabilityOf(
  request: Partial<Pick<VolumeRequest, 'pod' | 'persistent' | 'volume'>>,
  capabilities: Capabilities,
): CsiVolumeCapability {
  const { persistent, volume, pod } = request;
  const mode = accessModeOf(persistent?.spec?.accessModes?.[0] ?? 'ReadWriteOnce', capabilities);
  if (persistent?.spec?.volumeMode === 'Block') return { access: { type: 'block' }, mode };
  const group = groupOf(pod);
  return {
    access: {
      type: 'mount',
      fsType: persistent?.spec?.csi?.fsType ?? volume?.csi?.fsType ?? '',
      mountFlags: persistent?.spec?.mountOptions ?? [],
      group: group !== undefined && capabilities.has('VOLUME_MOUNT_GROUP') ? String(group) : '',
    },
    mode,
  };
}

function accessModeOf(mode: string, capabilities: Capabilities): CsiAccessMode {
  const isPrecise = capabilities.has('SINGLE_NODE_MULTI_WRITER');
  switch (mode) {
    case 'ReadOnlyMany':
      return 'MULTI_NODE_READER_ONLY';
    case 'ReadWriteMany':
      return 'MULTI_NODE_MULTI_WRITER';
    case 'ReadWriteOncePod':
      return isPrecise ? 'SINGLE_NODE_SINGLE_WRITER' : 'SINGLE_NODE_WRITER';
    default:
      return isPrecise ? 'SINGLE_NODE_MULTI_WRITER' : 'SINGLE_NODE_WRITER';
  }
}

/** Whether the kubelet changes the files' group to the pod's fsGroup, according to the driver's fsGroupPolicy. */
export function isOwnedByGroup(
  { persistent, volume }: Pick<VolumeRequest, 'persistent' | 'volume'>,
  capabilities: Capabilities,
  object: CSIDriver | undefined,
): boolean {
  if (capabilities.has('VOLUME_MOUNT_GROUP')) return false;
  const policy = object?.spec.fsGroupPolicy ?? 'ReadWriteOnceWithFSType';
  if (policy !== 'ReadWriteOnceWithFSType') return policy === 'File';
  const fsType = persistent?.spec?.csi?.fsType ?? volume.csi?.fsType ?? '';
  if (fsType === '') return false;
  const modes = persistent?.spec?.accessModes ?? [];
  return persistent === undefined || modes.includes('ReadWriteOnce') || modes.includes('ReadWriteOncePod');
}
