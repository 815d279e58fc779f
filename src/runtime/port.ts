/**
 * The runtime port, modelled on CRI v1 (k8s.io/cri-api runtime/v1) and limited to the parts that the kubelet uses.
 * Implementations: `runtime/oci` (runc and conmon, the embedded default) and `runtime/cri` (containerd, CRI-O). Every
 * implementation passes `test/conformance/runtime.ts`. IDs are opaque. Calls are idempotent where CRI's are: stopping
 * or removing a missing object succeeds.
 */
import type { ContainerFieldValues, SecurityFieldValues } from '../api/podspec/fields/table.ts';
import type { Uid } from '../base/brand.ts';

export interface Runtime {
  version(): Promise<{ readonly runtimeName: string; readonly runtimeVersion: string }>;
  features(): Promise<RuntimeFeatures>;
  /** Creates the pod's namespaces and network (unless host network), and its log directory. */
  runPodSandbox(config: SandboxConfig): Promise<string>;
  /** Kills all remaining containers and releases the network of the sandbox. */
  stopPodSandbox(sandboxId: string): Promise<void>;
  removePodSandbox(sandboxId: string): Promise<void>;
  listPodSandboxes(): Promise<readonly SandboxStatus[]>;
  /**
   * Creates the container in state `created`. The image must be present. `signal` cancels the creation: the call then
   * removes everything that it has created and throws RuntimeError 'create-failed'.
   */
  createContainer(sandboxId: string, config: ContainerConfig, signal?: AbortSignal): Promise<string>;
  startContainer(containerId: string): Promise<void>;
  /**
   * Sends SIGTERM (or the stop signal of the container or its image), then SIGKILL after `graceSeconds`. Resolves when
   * the container has exited.
   */
  stopContainer(containerId: string, graceSeconds: number): Promise<void>;
  removeContainer(containerId: string): Promise<void>;
  listContainers(): Promise<readonly ContainerStatus[]>;
  /**
   * Runs a command until it exits or the timeout expires. On a timeout, it kills every process that the command has
   * started and throws RuntimeError 'timeout'.
   */
  execSync(containerId: string, command: readonly string[], options: ExecSyncOptions): Promise<ExecResult>;
  exec(containerId: string, options: ExecOptions): Promise<ProcessStreams>;
  attach(containerId: string, options: AttachOptions): Promise<ProcessStreams>;
  /** Opens a byte stream to `port` on loopback inside of the pod's network namespace. */
  portForward(sandboxId: string, port: number): Promise<ByteStream>;
  updateContainerResources(containerId: string, resources: LinuxResources): Promise<void>;
  containerStats(containerId: string): Promise<ContainerStats | undefined>;
  /**
   * Usage of containers' writable layers and of `/etc` of their sandbox, by container ID. Throws CodedError 'timeout',
   * 'usage'.
   */
  writableLayers(
    containerIds: readonly string[],
    options: { readonly unit: 'bytes' | 'inodes'; readonly timeoutMs: number },
  ): Promise<ReadonlyMap<string, number>>;
  /** Opens a new log file at the same path, after the kubelet has renamed the old one. */
  reopenContainerLog(containerId: string): Promise<void>;
  /**
   * Calls `listener` whenever the state of a container or sandbox may have changed. The calls are only hints; the
   * kubelet lists to get the state. Returns a function that unsubscribes.
   */
  onChange(listener: (hint: { readonly sandboxId: string }) => void): () => void;
  /** Writes the state of a running container, which continues to run, into a new archive. Absent if not implemented. */
  checkpointContainer?(containerId: string, location: string): Promise<void>;
  /** Mounts the files of an image read-only at a directory. The image is kept until `unmountImage`. */
  mountImage?(imageId: string, target: string): Promise<void>;
  unmountImage?(target: string): Promise<void>;
  readonly images: ImageService;
}

/** Optional features of a runtime. */
export interface RuntimeFeatures {
  /** Whether read-only mounts can include all mounts below them (KEP-3857). */
  readonly recursiveReadOnlyMounts: boolean;
  /**
   * Whether the kernel enforces SELinux. Otherwise a pod's SELinux labels have no effect, as with upstream's runtimes.
   */
  readonly selinux: boolean;
  /** Whether the kernel enforces AppArmor. Default false. */
  readonly appArmor?: boolean;
  /** Handlers of runtime classes, the default one first with the name ''. Absent if there is only the default. */
  readonly handlers?: readonly RuntimeHandler[];
}

/** Features of a runtime class handler. Source: core/v1 NodeRuntimeHandler. */
export interface RuntimeHandler {
  readonly name: string;
  readonly recursiveReadOnlyMounts: boolean;
  /** Whether pods can have their own user namespaces (KEP-127). Default false. */
  readonly userNamespaces?: boolean;
}

export interface ImageService {
  /**
   * Throws RuntimeError 'image-not-found', 'image-pull-denied', 'image-invalid-name' or 'image-pull'. Returns the image
   * id (`sha256:…`).
   */
  pull(image: string, auth: RegistryAuth | undefined, onProgress?: OnPullProgress): Promise<string>;
  status(image: string): Promise<ImageStatus | undefined>;
  list(): Promise<readonly ImageStatus[]>;
  remove(image: string): Promise<void>;
}

/** Reports the progress of a pull in bytes of compressed layers that must be downloaded. */
export type OnPullProgress = (doneBytes: number, totalBytes: number) => void;

export interface RegistryAuth {
  readonly username: string;
  readonly password: string;
}

export interface ImageStatus {
  readonly id: string;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
  readonly sizeBytes: number;
  /** Whether the image is excluded from garbage collection. */
  readonly pinned?: boolean;
  /** User of the image config; absent if the user is not numeric. */
  readonly uid?: number;
  readonly username?: string;
}

export interface SandboxConfig {
  readonly name: string;
  readonly namespace: string;
  readonly uid: Uid;
  /** Counts sandboxes of the same pod. */
  readonly attempt: number;
  readonly hostname: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Directory for container logs: `/var/log/pods/<ns>_<name>_<uid>`. */
  readonly logDirectory: string;
  /** The pod's cgroup as the driver names it: `/kubepods/burstable/pod<uid>` or `kubepods-burstable-pod<uid>.slice`. */
  readonly cgroupParent: string;
  readonly hostNetwork: boolean;
  readonly hostPid: boolean;
  readonly hostIpc: boolean;
  readonly shareProcessNamespace: boolean;
  /** Whether a container of the pod is privileged, which some runtimes need to know when the sandbox is created. */
  readonly privileged?: boolean;
  readonly portMappings: readonly PortMapping[];
  readonly dns?: {
    readonly servers: readonly string[];
    readonly searches: readonly string[];
    readonly options: readonly string[];
  };
  readonly sysctls: Readonly<Record<string, string>>;
  /**
   * Image of the container that will be created first; its root file system can be prepared while the sandbox starts.
   * Undefined if unknown.
   */
  readonly firstImageId?: string;
  /** ID mapping of the pod's own user namespace; undefined if the pod uses the host's. */
  readonly userNamespace?: IdMapping;
  /**
   * Handler of the pod's runtime class; undefined or '' for the default. An unknown handler is rejected with
   * 'create-failed'.
   */
  readonly runtimeHandler?: string;
  /** Whether the pod belongs to the control plane. Its state may then be kept in memory while the disk is full. */
  readonly mayUseMemory?: boolean;
}

/** Mapping of user and group IDs: ID 0 in the pod is `hostId` on the host. */
export interface IdMapping {
  readonly hostId: number;
  readonly length: number;
}

export interface PortMapping {
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly containerPort: number;
  readonly hostPort: number;
  readonly hostIp: string;
}

export interface SandboxStatus {
  readonly id: string;
  readonly name: string;
  readonly namespace: string;
  readonly uid: Uid;
  readonly attempt: number;
  readonly state: 'ready' | 'notready';
  readonly createdAtMs: number;
  /** Addresses in the pod network, the primary one first. Empty for host network. */
  readonly ips: readonly string[];
  readonly hostNetwork: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Mount {
  readonly hostPath: string;
  readonly containerPath: string;
  readonly readOnly: boolean;
  /** Makes all mounts below this mount read-only as well. */
  readonly recursiveReadOnly?: boolean;
  readonly propagation: 'private' | 'hostToContainer' | 'bidirectional';
}

/**
 * Configuration of a container: one property for each entry of `CONTAINER_FIELDS`, and the properties below, which the
 * kubelet computes.
 */
export interface ContainerConfig extends ContainerFieldValues {
  readonly name: string;
  /** Counts restarts of this container in this pod; part of the log file name. */
  readonly attempt: number;
  /** Image reference as in the pod spec, and the ID returned by `images.pull` or `status`. */
  readonly image: string;
  readonly imageId: string;
  /**
   * Whether the container uses the host's own root, read-only, instead of an image. Required for the host root image.
   */
  readonly hostRoot?: boolean;
  /** Undefined for the image's entrypoint. */
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly mounts: readonly Mount[];
  readonly devices: readonly {
    readonly hostPath: string;
    readonly containerPath: string;
    readonly permissions: string;
  }[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Path relative to the sandbox's logDirectory: `<container>/<attempt>.log`. */
  readonly logPath: string;
  /** Size at which the log is truncated, even if it has not been read. Absent for no limit. */
  readonly logLimitBytes?: number;
  readonly resources: LinuxResources;
  readonly security: ContainerSecurity;
  /** ID of a running container of the same sandbox whose PID namespace is joined. */
  readonly pidNamespaceOf?: string;
}

/** Has a property per entry of `SECURITY_FIELDS`, beside the seccomp profile. */
export interface ContainerSecurity extends SecurityFieldValues {
  readonly seccomp: 'runtime/default' | 'unconfined' | 'localhost';
  /** Only for `localhost`: file with the profile, a `linux.seccomp` of the runtime specification. */
  readonly seccompProfile?: string;
}

export interface LinuxResources {
  readonly cpuShares: number;
  /** Microseconds per period; 0 for no limit. */
  readonly cpuQuota: number;
  readonly cpuPeriod: number;
  /** Bytes; 0 for no limit. */
  readonly memoryLimitBytes: number;
  readonly oomScoreAdj: number;
  /** 0 for no limit. */
  readonly pidsLimit: number;
  /** Allowed CPUs and memory nodes in the format of cpuset(7); undefined for those of the pod. */
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
  readonly hugePageLimits?: readonly { readonly pageSizeBytes: number; readonly limitBytes: number }[];
  /** Files of cgroup v2. No effect on v1. */
  readonly unified?: Readonly<Record<string, string>>;
}

export interface ContainerStatus {
  readonly id: string;
  readonly sandboxId: string;
  readonly name: string;
  readonly attempt: number;
  readonly image: string;
  readonly imageId: string;
  readonly state: 'created' | 'running' | 'exited' | 'unknown';
  readonly createdAtMs: number;
  readonly startedAtMs: number;
  readonly finishedAtMs: number;
  readonly exitCode: number;
  /** 'OOMKilled', 'Completed', 'Error', 'ContainerCannotRun' …; '' while running. */
  readonly reason: string;
  readonly message: string;
  /** Absolute path of the log file. */
  readonly logPath: string;
  readonly pid: number;
  /** User of the first process; undefined if the runtime does not report it. */
  readonly user?: ContainerUser;
  /** Stop signal; undefined if the runtime does not report it. */
  readonly stopSignal?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface ContainerUser {
  readonly uid: number;
  readonly gid: number;
  readonly supplementalGroups: readonly number[];
}

export interface ExecSyncOptions {
  /** 0 for no timeout. */
  readonly timeoutMs: number;
  /** Limit per stream. Further output is discarded. */
  readonly maxOutputBytes: number;
  /**
   * Whether background processes of the command continue to run after the command has exited. By default they are
   * killed.
   */
  readonly leavesProcesses?: boolean;
}

export interface ExecResult {
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  readonly exitCode: number;
}

export interface AttachOptions {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

export interface ExecOptions extends AttachOptions {
  readonly command: readonly string[];
}

/** Bidirectional byte stream with back-pressure. */
export interface ByteStream {
  readonly readable: AsyncIterable<Uint8Array>;
  /** Resolves when the other side can accept more data. */
  write(chunk: Uint8Array): Promise<void>;
  /** Half-closes the writing side. */
  end(): void;
  destroy(): void;
}

export interface ProcessStreams {
  /** Undefined unless requested. */
  readonly stdin: { write(chunk: Uint8Array): Promise<void>; end(): void } | undefined;
  readonly stdout: AsyncIterable<Uint8Array> | undefined;
  /** Undefined with a TTY. */
  readonly stderr: AsyncIterable<Uint8Array> | undefined;
  /** Resolves when the terminal has the size. May reject when the terminal has closed. */
  resize(columns: number, rows: number): Promise<void>;
  /** Exit code of an exec. For an attach, 0 once the container's streams have ended. */
  readonly exited: Promise<number>;
  /** Kills an exec that has not exited, with all of its processes. Detaches an attach. */
  close(): void;
}

export interface ContainerStats {
  readonly timestampMs: number;
  readonly cpuUsageCoreNanoSeconds: number;
  readonly memoryWorkingSetBytes: number;
  readonly memoryUsageBytes: number;
  readonly memoryRssBytes: number;
  readonly pids: number;
  /** Time in which the CPU limit stopped tasks. Undefined if the runtime does not report it. */
  readonly throttledNanoSeconds?: number;
}

export type RuntimeErrorCode =
  | 'not-found'
  | 'image-not-found'
  | 'image-pull-denied'
  | 'image-invalid-name'
  | 'image-pull'
  | 'create-failed'
  | 'start-failed'
  | 'timeout'
  | 'network'
  | 'internal';

export class RuntimeError extends Error {
  readonly code: RuntimeErrorCode;
  constructor(code: RuntimeErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'RuntimeError';
    this.code = code;
  }
}
