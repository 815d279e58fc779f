import type { KubeletFiles } from '../../components/kubelet/files-port.ts';
import type { Mounter } from '../../components/kubelet/port.ts';
import { logFiles } from './log-files.ts';
import { manifests } from './manifests.ts';
import { podFiles } from './pod-files.ts';
import { createVolumeFiles } from './volume-files.ts';

/** `mounts` binds sub-paths of volumes. */
export function createKubeletFiles(mounts: Mounter): KubeletFiles {
  return { pods: podFiles, volumes: createVolumeFiles(mounts), logs: logFiles, manifests };
}
