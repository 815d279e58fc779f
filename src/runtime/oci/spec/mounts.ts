/** The mount list of a container (OCI runtime specification, `mounts`). */
import type { Mount } from '../../port.ts';

export interface OciMount {
  readonly destination: string;
  readonly type: string;
  readonly source: string;
  readonly options: readonly string[];
}

export interface SystemMountOptions {
  /** Host directory to mount as `/dev/shm`. */
  readonly shm: string;
  readonly writableSys: boolean;
}

export function systemMounts(options: SystemMountOptions): readonly OciMount[] {
  const access = options.writableSys ? 'rw' : 'ro';
  return [
    { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
    {
      destination: '/dev',
      type: 'tmpfs',
      source: 'tmpfs',
      options: ['nosuid', 'strictatime', 'mode=755', 'size=65536k'],
    },
    {
      destination: '/dev/pts',
      type: 'devpts',
      source: 'devpts',
      options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5'],
    },
    { destination: '/dev/mqueue', type: 'mqueue', source: 'mqueue', options: ['nosuid', 'noexec', 'nodev'] },
    { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev', access] },
    {
      destination: '/sys/fs/cgroup',
      type: 'cgroup',
      source: 'cgroup',
      options: ['nosuid', 'noexec', 'nodev', 'relatime', access],
    },
    {
      destination: '/dev/shm',
      type: 'bind',
      source: options.shm,
      options: ['rbind', 'nosuid', 'noexec', 'nodev', 'rw'],
    },
  ];
}

export function podMount(mount: Mount): OciMount {
  const propagation = { private: 'rprivate', hostToContainer: 'rslave', bidirectional: 'rshared' }[mount.propagation];
  return {
    destination: normalisePath(mount.containerPath),
    type: 'bind',
    source: mount.hostPath,
    options: ['rbind', propagation, !mount.readOnly ? 'rw' : mount.recursiveReadOnly === true ? 'rro' : 'ro'],
  };
}

/** Propagation of the container's root mount that its mounts require. */
export function rootPropagation(mounts: readonly Mount[]): string | undefined {
  if (mounts.some(({ propagation }) => propagation === 'bidirectional')) return 'rshared';
  return mounts.some(({ propagation }) => propagation === 'hostToContainer') ? 'rslave' : undefined;
}

/** Paths of kernel file systems. Every container has its own mounts at these paths. */
const SYSTEM = /^\/(?:dev|proc|sys)(?:\/|$)/;

/**
 * Merges mount lists: later lists replace earlier mounts at the same path, and parents come before their children. The
 * kernel's file systems come last, so that they cover anything that a link in the image or in a volume placed below
 * them.
 */
export function mergeMounts(...lists: readonly (readonly OciMount[])[]): readonly OciMount[] {
  const byDestination = new Map<string, OciMount>();
  for (const mount of lists.flat()) {
    byDestination.delete(mount.destination);
    byDestination.set(mount.destination, mount);
  }
  const depth = (path: string): number => path.split('/').length;
  const rank = ({ destination }: OciMount): number => (SYSTEM.test(destination) ? 1000 : 0) + depth(destination);
  return [...byDestination.values()].toSorted((a, b) => rank(a) - rank(b));
}

/** Removes empty and `.` components; `..` is kept, because the runtime resolves it inside the root. */
export const normalisePath = (path: string): string =>
  `/${path
    .split('/')
    .filter((component) => component !== '' && component !== '.')
    .join('/')}`;
