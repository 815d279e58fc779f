/** Ports of the kubelet to its host, beside the runtime, the cgroup manager and the API. */

import type { Cpu } from './core/topology/assignment.ts';

/** Host facts for the Node object. Source: core/v1 NodeSystemInfo. */
export interface HostInfo {
  readonly hostname: string;
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
  readonly kernelVersion: string;
  /** PRETTY_NAME of os-release. */
  readonly osImage: string;
  readonly operatingSystem: 'linux';
  /** GOARCH name: amd64, arm64, arm. */
  readonly architecture: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  /** Reserved bytes by huge page resource, such as `hugepages-2Mi`. Every supported size has an entry. */
  readonly hugePages?: Readonly<Record<string, number>>;
  readonly swapBytes?: number;
  /** Lowest oom_score_adj that this process may set: -1000 with CAP_SYS_RESOURCE, otherwise its own value. */
  readonly oomScoreFloor: number;
}

/** NUMA placement of the machine's CPUs and memory. */
export interface MachineTopology {
  readonly cpus: readonly Cpu[];
  /** Bytes of `memory` and of huge pages by NUMA node. */
  readonly memory: readonly { readonly numa: number; readonly resources: Readonly<Record<string, number>> }[];
}

export interface HostUsage {
  readonly timestampMs: number;
  readonly bootTimeMs: number;
  readonly cpuUsageNanoSeconds: number;
  readonly memoryAvailableBytes: number;
  readonly memoryUsageBytes: number;
  readonly memoryWorkingSetBytes: number;
  readonly memoryRssBytes: number;
  /**
   * Number of processes including threads, because both count against the limit. Source: pkg/kubelet/stats/pidlimit.
   */
  readonly processes: number;
  readonly maxProcesses: number;
}

export interface FileSystemUsage {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

export interface HostFacts {
  info(): Promise<HostInfo>;
  topology(): Promise<MachineTopology>;
  usage(): Promise<HostUsage>;
  fileSystem(path: string): Promise<FileSystemUsage>;
  /** Like `fileSystem`, for a file system that may hang. Rejects after a deadline and does not block a thread. */
  foreignFileSystem(path: string): Promise<FileSystemUsage>;
  /** Resolves when this process has completed a file operation. */
  touchFile(): Promise<void>;
  /** Contents of the host's resolv.conf and hosts files. */
  resolvConf(): Promise<string>;
  hosts(): Promise<string>;
}

/**
 * Port for inotify. Calls the listener after the file or the directory content has changed; several changes may cause a
 * single call.
 */
export interface FileWatch {
  watch(path: string, listener: () => void): { close(): void };
}

/** Mounts for volumes. Errors contain the mount point and the output of mount(8). */
export interface Mounter {
  tmpfs(target: string, options: { readonly sizeBytes?: number; readonly mode: number }): Promise<void>;
  /** Mounts a hugetlbfs with pages of this size. */
  hugetlbfs(target: string, options: { readonly pageSizeBytes: number; readonly mode: number }): Promise<void>;
  /** Bind-mounts an open file (`/proc/<pid>/fd/<n>`) without resolving a link again. */
  bindFd(fd: number, target: string): Promise<void>;
  /**
   * Makes a bind mount receive mounts of the directory that it shows, without propagating its own mounts and unmounts
   * back. Mounts still propagate to containers.
   */
  receiveMounts(target: string): Promise<void>;
  /** Unmounts all mounts at and below `target`, deepest first. Succeeds when there are none. */
  unmountTree(target: string): Promise<void>;
  isMountPoint(target: string): Promise<boolean>;
}

export interface Manifest {
  /** File, URL or key of the manifest. Part of the identity of its pods and of error messages. */
  readonly origin: string;
  readonly content: string;
}

/** Source of manifests beside the kubelet's directory and URL. */
export interface ManifestFeed {
  readonly source: 'store' | 'submitted';
  /**
   * Calls the listener with all manifests when they are first available and after each change. Returns an unsubscribe
   * function.
   */
  follow(listener: (manifests: readonly Manifest[]) => void): () => void;
}
