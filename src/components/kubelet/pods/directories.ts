import { join } from 'node:path';
import type { Pod } from 'kubernetes-types/core/v1';
import type { Trees } from '../../../io/trees/port.ts';
import type { KubeletPaths } from '../config.ts';

/** Where a pod's files are, as upstream lays them out below the kubelet's directory. */
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
  pod(uid: string): string {
    return join(this.pods, fileName(uid));
  }
  /** `plugin` in upstream's escaped form: `kubernetes.io~empty-dir`. */
  volume(uid: string, plugin: string, name: string): string {
    return join(this.pod(uid), 'volumes', `kubernetes.io~${plugin}`, fileName(name));
  }
  /** One file for each volume that is mounted through a driver or a tool. */
  mountRecords(uid: string): string {
    return join(this.pod(uid), 'mounts');
  }
  mountRecord(uid: string, volume: string): string {
    return join(this.mountRecords(uid), fileName(volume));
  }
  /** What drivers keep for all pods of the node. */
  get plugins(): string {
    return join(this.paths.volumes, 'plugins');
  }
  /** Where plug-ins put the sockets that they register with. */
  get pluginRegistry(): string {
    return join(this.paths.volumes, 'plugins_registry');
  }
  /** Where a volume is staged for all pods; `key` is a file name made from the driver's name for the volume. */
  csiStaging(driver: string, key: string): string {
    return join(this.plugins, 'kubernetes.io/csi', fileName(driver), fileName(key), 'globalmount');
  }
  /** One file for each volume that a driver has staged. */
  get stagedRecords(): string {
    return join(this.paths.volumes, 'staged-volumes');
  }
  csiDevice(step: 'staging' | 'publish', name: string): string {
    return join(this.plugins, 'kubernetes.io/csi/volumeDevices', step, fileName(name));
  }
  iscsiStaging(iqn: string, lun: number): string {
    return join(this.plugins, 'kubernetes.io/iscsi', fileName(`${iqn}-lun-${lun}`));
  }
  /** The kubelet's directory as drivers know it. */
  get driverRoot(): string {
    return this.paths.driverRoot ?? this.paths.volumes;
  }
  /** The same path as drivers know it, which expect the kubelet's directory at upstream's place. */
  asDriversKnow(path: string): string {
    const { volumes, driverRoot } = this.paths;
    return driverRoot !== undefined && path.startsWith(`${volumes}/`)
      ? `${driverRoot}${path.slice(volumes.length)}`
      : path;
  }
  subPath(uid: string, volume: string, container: string, index: number): string {
    return join(this.pod(uid), 'volume-subpaths', fileName(volume), fileName(container), String(index));
  }
  etcHosts(uid: string): string {
    return join(this.pod(uid), 'etc-hosts');
  }
  /** One for each attempt is below it. */
  terminationMessages(uid: string, container: string): string {
    return join(this.pod(uid), 'containers', fileName(container));
  }
  terminationMessage(uid: string, container: string, attempt: number): string {
    return join(this.terminationMessages(uid, container), String(attempt));
  }
  logs(pod: Pod): string {
    const { namespace = 'default', name = '', uid = '' } = pod.metadata ?? {};
    return join(this.paths.podLogs, fileName(`${namespace}_${name}_${uid}`));
  }
  /** Removes what a pod that is gone left on disk. Its volumes must have been torn down. */
  async removePod(uid: string): Promise<void> {
    await this.trees.remove(this.pod(uid));
  }
  /** Removes what a pod that is over wrote into its volumes. They must have been torn down. */
  async removeVolumes(uid: string): Promise<void> {
    await this.trees.remove(join(this.pod(uid), 'volumes'));
  }
  async removeLogs(pod: Pod): Promise<void> {
    await this.trees.remove(this.logs(pod));
  }
}

/**
 * Names come from validated objects and from manifests; a part that could leave its directory is a bug or an attack.
 */
function fileName(part: string): string {
  if (part === '' || part === '.' || part === '..' || part.includes('/') || part.includes('\0')) {
    throw new Error(`not a file name: ${JSON.stringify(part)}`);
  }
  return part;
}
