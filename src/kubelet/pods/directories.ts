import { join } from 'node:path';
import type { Pod } from '../../api/generated/core/v1.ts';
import type { Uid } from '../../base/brand.ts';
import type { Trees } from '../../runtime/directory-removal/port.ts';
import type { KubeletPaths } from '../config/kubelet-config.ts';

/** Paths of a pod's files below the kubelet's directory, in upstream's layout. */
export class PodDirectories {
  private readonly paths: KubeletPaths;
  private readonly trees: Trees;
  constructor(paths: KubeletPaths, trees: Trees) {
    this.paths = paths;
    this.trees = trees;
  }

  get pods(): string {
    return join(this.paths.volumes, 'pods');
  }
  pod(uid: Uid): string {
    return join(this.pods, fileName(uid));
  }
  /** Directory of a volume. `plugin` is escaped as upstream does: `kubernetes.io~empty-dir`. */
  volume(uid: Uid, plugin: string, name: string): string {
    return join(this.pod(uid), 'volumes', `kubernetes.io~${plugin}`, fileName(name));
  }
  /** Directory with one file for each volume mounted by a driver or a tool. */
  mountRecords(uid: Uid): string {
    return join(this.pod(uid), 'mounts');
  }
  mountRecord(uid: Uid, volume: string): string {
    return join(this.mountRecords(uid), fileName(volume));
  }
  /** Directory of node-wide driver data. */
  get plugins(): string {
    return join(this.paths.volumes, 'plugins');
  }
  /** Directory in which plug-ins create the sockets that register them. */
  get pluginRegistry(): string {
    return join(this.paths.volumes, 'plugins_registry');
  }
  /** Directory where a volume is staged for all pods. `key` is a file name derived from the driver's volume handle. */
  csiStaging(driver: string, key: string): string {
    return join(this.plugins, 'kubernetes.io/csi', fileName(driver), fileName(key), 'globalmount');
  }
  /** Directory with one file for each volume that a driver has staged. */
  get stagedRecords(): string {
    return join(this.paths.volumes, 'staged-volumes');
  }
  csiDevice(step: 'staging' | 'publish', name: string): string {
    return join(this.plugins, 'kubernetes.io/csi/volumeDevices', step, fileName(name));
  }
  /** Directory where an iSCSI disk is mounted for all pods. `key` is a file name derived from the portals. */
  iscsiStaging(iqn: string, lun: number, key: string): string {
    return join(this.plugins, 'kubernetes.io/iscsi', fileName(`${iqn}-lun-${lun}-${key}`));
  }
  /** Directory or disk image of a volume of the embedded provisioner. Undefined if the node has none. */
  localVolume(name: string): string | undefined {
    const { localVolumes } = this.paths;
    return localVolumes === undefined ? undefined : join(localVolumes, fileName(name));
  }
  /** The kubelet's directory as drivers see it. */
  get driverRoot(): string {
    return this.paths.driverRoot ?? this.paths.volumes;
  }
  /** Translates a path for drivers, which expect the kubelet's directory at upstream's location. */
  asDriversKnow(path: string): string {
    const { volumes, driverRoot } = this.paths;
    return driverRoot !== undefined && path.startsWith(`${volumes}/`)
      ? `${driverRoot}${path.slice(volumes.length)}`
      : path;
  }
  subPath(uid: Uid, volume: string, container: string, index: number): string {
    return join(this.pod(uid), 'volume-subpaths', fileName(volume), fileName(container), String(index));
  }
  etcHosts(uid: Uid): string {
    return join(this.pod(uid), 'etc-hosts');
  }
  /** Directory with one termination message file per attempt. */
  terminationMessages(uid: Uid, container: string): string {
    return join(this.pod(uid), 'containers', fileName(container));
  }
  terminationMessage(uid: Uid, container: string, attempt: number): string {
    return join(this.terminationMessages(uid, container), String(attempt));
  }
  logs(pod: Pod): string {
    const { namespace = 'default', name = '', uid = '' } = pod.metadata ?? {};
    return join(this.paths.podLogs, fileName(`${namespace}_${name}_${uid}`));
  }
  /** Removes the files of a deleted pod. Its volumes must already be torn down. */
  async removePod(uid: Uid): Promise<void> {
    await this.trees.remove(this.pod(uid));
  }
  /** Removes the volume data of a terminated pod. The volumes must already be torn down. */
  async removeVolumes(uid: Uid): Promise<void> {
    await this.trees.remove(join(this.pod(uid), 'volumes'));
  }
  async removeLogs(pod: Pod): Promise<void> {
    await this.trees.remove(this.logs(pod));
  }
}

/**
 * Validates a path component from an object or manifest. Throws for a component that would leave its directory, which
 * is a bug or an attack.
 */
function fileName(part: string): string {
  if (part === '' || part === '.' || part === '..' || part.includes('/') || part.includes('\0')) {
    throw new Error(`not a file name: ${JSON.stringify(part)}`);
  }
  return part;
}
