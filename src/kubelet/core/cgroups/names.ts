/**
 * Names of cgroups, identical to those of upstream's two drivers. Source: k8s.io/kubernetes
 * pkg/kubelet/cm/cgroup_manager_linux.go CgroupName.ToCgroupfs and ToSystemd.
 */
import { toUid, type Uid } from '../../../base/brand.ts';
import type { QosClass } from './resources.ts';

/** Logical components below the root of the hierarchy: `['kubepods', 'burstable', 'pod<uid>']`. */
export type CgroupPath = readonly string[];
export type CgroupDriver = 'cgroupfs' | 'systemd';

const POD_PREFIX = 'pod';
const SLICE = '.slice';

export function rootComponents(cgroupRoot: string): CgroupPath {
  return cgroupRoot.split('/').filter((part) => part !== '');
}

export function kubepodsPath(root: CgroupPath): CgroupPath {
  return [...root, 'kubepods'];
}

/** Guaranteed pods are directly below kubepods. */
export function qosPath(root: CgroupPath, qos: QosClass): CgroupPath {
  const kubepods = kubepodsPath(root);
  return qos === 'Guaranteed' ? kubepods : [...kubepods, qos.toLowerCase()];
}

export function podPath(root: CgroupPath, qos: QosClass, uid: Uid): CgroupPath {
  return [...qosPath(root, qos), POD_PREFIX + uid];
}

/** `/kubepods/burstable/pod<uid>` */
export function cgroupfsName(path: CgroupPath): string {
  return `/${path.join('/')}`;
}

/** `kubepods-burstable-pod<uid_with_underscores>.slice`; the root slice for an empty path. */
export function sliceName(path: CgroupPath): string {
  if (path.length === 0) return `-${SLICE}`;
  return path.map((part) => part.replaceAll('-', '_')).join('-') + SLICE;
}

/** `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice` */
export function systemdName(path: CgroupPath): string {
  return `/${path.map((_, index) => sliceName(path.slice(0, index + 1))).join('/')}`;
}

/** Directory of the cgroup, relative to the mount point. */
export function directoryName(driver: CgroupDriver, path: CgroupPath): string {
  return driver === 'systemd' ? systemdName(path) : cgroupfsName(path);
}

/** Name of the cgroup parent in the form that container runtimes expect. */
export function runtimeParentName(driver: CgroupDriver, path: CgroupPath): string {
  return driver === 'systemd' ? sliceName(path) : cgroupfsName(path);
}

/**
 * The UID in the last component of a pod's directory; undefined for other directories. In systemd names, dashes of the
 * UID are underscores and are converted back, which is correct for RFC 4122 UIDs and for the UIDs of static pods, which
 * have no dashes.
 */
export function podUidOf(driver: CgroupDriver, directory: string): Uid | undefined {
  const name = directory.slice(directory.lastIndexOf('/') + 1);
  const uid =
    driver === 'cgroupfs'
      ? /^pod([0-9A-Za-z._-]+)$/.exec(name)?.[1]
      : /-pod([0-9A-Za-z._]+)\.slice$/.exec(name)?.[1]?.replaceAll('_', '-');
  return uid === undefined ? undefined : toUid(uid);
}
