/** What the kubelet needs from outside besides the runtime, the cgroup manager and the API. */

import type { Cpu } from '../../core/topology/assignment.ts';

/** Facts about the host that end up in the Node object. Source: core/v1 NodeSystemInfo. */
export interface HostInfo {
  readonly hostname: string;
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
  readonly kernelVersion: string;
  /** PRETTY_NAME of os-release. */
  readonly osImage: string;
  readonly operatingSystem: 'linux';
  /** As GOARCH names it: amd64, arm64, arm. */
  readonly architecture: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  /** Bytes of reserved huge pages by resource name, `hugepages-2Mi`; sizes that the machine supports have an entry. */
  readonly hugePages?: Readonly<Record<string, number>>;
  readonly swapBytes?: number;
  /** The lowest oom_score_adj this process may give to others: -1000 with CAP_SYS_RESOURCE, else its own. */
  readonly oomScoreFloor: number;
}

/** Where the machine's CPUs and memory are. */
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
  /** Threads count as well: they use up what is limited. Source: pkg/kubelet/stats/pidlimit. */
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
  /** As `fileSystem`, for one that may hang: rejects after a deadline and holds no thread meanwhile. */
  foreignFileSystem(path: string): Promise<FileSystemUsage>;
  /** Resolves once a file operation of this process was carried out. */
  touchFile(): Promise<void>;
  /** Contents of the host's resolv.conf and hosts files. */
  resolvConf(): Promise<string>;
  hosts(): Promise<string>;
}

/** inotify, as a port: calls back, coalesced, when something in the directory or the file changed. */
export interface FileWatch {
  watch(path: string, listener: () => void): { close(): void };
}

/** Mounts that volumes need. Errors name the mount point and what mount(8) said. */
export interface Mounter {
  tmpfs(target: string, options: { readonly sizeBytes?: number; readonly mode: number }): Promise<void>;
  /** Huge pages of this size. */
  hugetlbfs(target: string, options: { readonly pageSizeBytes: number; readonly mode: number }): Promise<void>;
  /** Binds an already opened file (`/proc/<pid>/fd/<n>`) without following any link again. */
  bindFd(fd: number, target: string): Promise<void>;
  /** Unmounts everything at and below `target`, deepest first; nothing mounted is fine. */
  unmountTree(target: string): Promise<void>;
  isMountPoint(target: string): Promise<boolean>;
}

export interface Manifest {
  /** File, address or key: part of the identity of its pods and of error messages. */
  readonly origin: string;
  /** A Pod or a PodList, YAML or JSON. */
  readonly content: string;
}

/** Manifests besides those of the kubelet's directory and URL. */
export interface ManifestFeed {
  readonly source: 'store' | 'submitted';
  /** Calls back with all manifests once they are known, and at each change. Returns what ends it. */
  follow(listener: (manifests: readonly Manifest[]) => void): () => void;
}
