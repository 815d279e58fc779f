import type { Mounter } from '../../port.ts';
import type { KubeletFiles } from '../../ports/files-port.ts';
import { createForeignFiles, type ForeignFilesOptions } from './foreign-files.ts';
import { logFiles } from './log-files.ts';
import { manifests } from './manifests.ts';
import { podFiles } from './pod-files.ts';
import { createVolumeFiles } from './volume-files.ts';

/**
 * `mounts` binds sub-paths of volumes. `foreign` accesses paths on remote file systems in a process of its own
 * (`createForeignFiles`); if undefined, every path is accessed in this process.
 */
export function createKubeletFiles(
  mounts: Mounter,
  foreign?: Pick<ForeignFilesOptions, 'helper' | 'isOwn' | 'deadlines'>,
): KubeletFiles {
  const volumes = createVolumeFiles(mounts);
  return {
    pods: podFiles,
    volumes,
    logs: logFiles,
    manifests,
    foreign: foreign === undefined ? volumes : createForeignFiles({ ...foreign, mounts, own: volumes }),
  };
}
