/**
 * The runtime port: shaped like CRI v1 (k8s.io/cri-api runtime/v1), trimmed to what the kubelet uses. Implementations:
 * `io/oci` (runc + conmon, embedded default) and later `io/cri` (containerd, CRI-O). Every implementation passes
 * `test/conformance/runtime.ts`. Ids are opaque. All calls are idempotent where CRI's are: stopping or removing what is
 * gone succeeds.
 */
export interface Runtime {
  version(): Promise<{ readonly runtimeName: string; readonly runtimeVersion: string }>;
  features(): Promise<RuntimeFeatures>;
  /** Creates the pod's namespaces and network (unless host network), and its log directory. */
  runPodSandbox(config: SandboxConfig): Promise<string>;
  /** Kills what is left in it and releases its network. */
  stopPodSandbox(sandboxId: string): Promise<void>;
  removePodSandbox(sandboxId: string): Promise<void>;
  listPodSandboxes(): Promise<readonly SandboxStatus[]>;
  /** The image must be present. Creates the container in state `created`. */
  createContainer(sandboxId: string, config: ContainerConfig): Promise<string>;
  startContainer(containerId: string): Promise<void>;
  /**
   * SIGTERM (or the container's or its image's stop signal), then SIGKILL after `graceSeconds`. Resolves when it is
   * dead.
   */
  stopContainer(containerId: string, graceSeconds: number): Promise<void>;
  removeContainer(containerId: string): Promise<void>;
  listContainers(): Promise<readonly ContainerStatus[]>;
  /**
   * Runs to the end or the timeout: then it kills every process that the command has started and throws RuntimeError
   * 'timeout'.
   */
  execSync(containerId: string, command: readonly string[], options: ExecSyncOptions): Promise<ExecResult>;
  exec(containerId: string, options: ExecOptions): Promise<ProcessStreams>;
  attach(containerId: string, options: AttachOptions): Promise<ProcessStreams>;
  /** A byte stream to `port` on loopback inside the pod's network namespace. */
  portForward(sandboxId: string, port: number): Promise<ByteStream>;
  updateContainerResources(containerId: string, resources: LinuxResources): Promise<void>;
  containerStats(containerId: string): Promise<ContainerStats | undefined>;
  /**
   * What containers wrote into their own root file systems and into `/etc` of their sandbox, by container id. Throws
   * CodedError 'timeout', 'usage'.
   */
  writableLayers(
    containerIds: readonly string[],
    options: { readonly unit: 'bytes' | 'inodes'; readonly timeoutMs: number },
  ): Promise<ReadonlyMap<string, number>>;
  /** After the kubelet renamed the log file: opens a new one at the same path. */
  reopenContainerLog(containerId: string): Promise<void>;
  /**
   * Calls back whenever a container's or sandbox's state may have changed. Hints only: the kubelet lists to know.
   * Returns an unsubscribe.
   */
  onChange(listener: (hint: { readonly sandboxId: string }) => void): () => void;
  /** Writes the state of a running container, which goes on, into a new archive; absent: not implemented. */
  checkpointContainer?(containerId: string, location: string): Promise<void>;
  /** Mounts the files of an image read-only at a directory; the image stays until `unmountImage`. */
  mountImage?(imageId: string, target: string): Promise<void>;
  unmountImage?(target: string): Promise<void>;
  readonly images: ImageService;
}

/** What the kubelet may ask for beyond the rest of this port. */
export interface RuntimeFeatures {
  /** A read-only mount can be so with everything that is mounted below it (KEP-3857). */
  readonly recursiveReadOnlyMounts: boolean;
  /** The kernel enforces SELinux: without it, labels that a pod asks for mean nothing, as with upstream's runtimes. */
  readonly selinux: boolean;
  /** The kernel enforces AppArmor; absent: it does not. */
  readonly appArmor?: boolean;
  /** Of runtime classes, the default one first under the name ''; absent: there is only that. */
  readonly handlers?: readonly RuntimeHandler[];
}

/** What a handler of a runtime class can do. Source: core/v1 NodeRuntimeHandler. */
export interface RuntimeHandler {
  readonly name: string;
  readonly recursiveReadOnlyMounts: boolean;
  /** Pods can have user namespaces of their own (KEP-127); absent: they cannot. */
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

/** Bytes of compressed layers, of those that are missing here. */
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
  /** Garbage collection keeps it. */
  readonly pinned?: boolean;
  /** Numeric user of the image config, if numeric. */
  readonly uid?: number;
  readonly username?: string;
}

export interface SandboxConfig {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
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
  /** Some container of it is privileged, which runtimes may need to know from the beginning. */
  readonly privileged?: boolean;
  readonly portMappings: readonly PortMapping[];
  readonly dns?: {
    readonly servers: readonly string[];
    readonly searches: readonly string[];
    readonly options: readonly string[];
  };
  readonly sysctls: Readonly<Record<string, string>>;
  /** Of the container that will be created first: its root may be made beside the sandbox. Undefined: not known. */
  readonly firstImageId?: string;
  /** The pod has a user namespace of its own; undefined: the host's. */
  readonly userNamespace?: IdMapping;
  /** Of the pod's runtime class; undefined or '': the default. An unknown one is refused as 'create-failed'. */
  readonly runtimeHandler?: string;
  /** The pod belongs to the control plane: its state may be in memory while the disk is full. */
  readonly mayUseMemory?: boolean;
}

/** User and group ids from 0 in the pod, and where they begin on the host. */
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
  readonly uid: string;
  readonly attempt: number;
  readonly state: 'ready' | 'notready';
  readonly createdAtMs: number;
  /** Addresses in the pod network, first is primary; empty for host network. */
  readonly ips: readonly string[];
  readonly hostNetwork: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Mount {
  readonly hostPath: string;
  readonly containerPath: string;
  readonly readOnly: boolean;
  /** Read-only with everything that is mounted below it. */
  readonly recursiveReadOnly?: boolean;
  readonly propagation: 'private' | 'hostToContainer' | 'bidirectional';
}

export interface ContainerConfig {
  readonly name: string;
  /** Counts restarts of this container in this pod; part of the log file name. */
  readonly attempt: number;
  /** Reference as in the pod spec, and the id that `images.pull` or `status` gave. */
  readonly image: string;
  readonly imageId: string;
  /** The root is the host's own, read-only, instead of the image's; without it that image is refused. */
  readonly hostRoot?: boolean;
  /** Undefined: the image's entrypoint. */
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly workingDir?: string;
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly mounts: readonly Mount[];
  readonly devices: readonly {
    readonly hostPath: string;
    readonly containerPath: string;
    readonly permissions: string;
  }[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Relative to the sandbox's logDirectory: `<container>/<attempt>.log`. */
  readonly logPath: string;
  /** Size at which the log begins again, whatever was read of it; absent: no limit. */
  readonly logLimitBytes?: number;
  readonly stdin: boolean;
  readonly stdinOnce: boolean;
  readonly tty: boolean;
  /** `SIGUSR1`, `SIGRTMIN+3` …; undefined: the image's. */
  readonly stopSignal?: string;
  readonly resources: LinuxResources;
  readonly security: ContainerSecurity;
  /** Id of a running container of the same sandbox whose processes this one is to see: its pid namespace is joined. */
  readonly pidNamespaceOf?: string;
}

export interface ContainerSecurity {
  readonly privileged: boolean;
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly supplementalGroups: readonly number[];
  /** Without the groups that the image's /etc/group gives the user. */
  readonly strictSupplementalGroups?: boolean;
  readonly readOnlyRootFilesystem: boolean;
  readonly allowPrivilegeEscalation: boolean;
  readonly addCapabilities: readonly string[];
  readonly dropCapabilities: readonly string[];
  readonly seccomp: 'runtime/default' | 'unconfined' | 'localhost';
  /** With `localhost`: the file with the profile, a `linux.seccomp` of the runtime specification. */
  readonly seccompProfile?: string;
  /** Undefined: none. With `localhost` the profile is loaded on the host. */
  readonly appArmor?:
    | { readonly type: 'runtime/default' | 'unconfined' }
    | { readonly type: 'localhost'; readonly profile: string };
  readonly procMount: 'default' | 'unmasked';
}

export interface LinuxResources {
  readonly cpuShares: number;
  /** µs per period; 0: none. */
  readonly cpuQuota: number;
  readonly cpuPeriod: number;
  /** Bytes; 0: none. */
  readonly memoryLimitBytes: number;
  readonly oomScoreAdj: number;
  /** 0: none. */
  readonly pidsLimit: number;
  /** CPUs and memory nodes that it may use, as cpuset(7) lists them; undefined: those of the pod. */
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
  readonly hugePageLimits?: readonly { readonly pageSizeBytes: number; readonly limitBytes: number }[];
  /** Files of cgroup v2; without effect on v1. */
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
  /** Whom the first process was started as; undefined where the runtime does not say. */
  readonly user?: ContainerUser;
  /** The signal that asks it to end; undefined where the runtime does not say. */
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
  /** 0: none. */
  readonly timeoutMs: number;
  /** Of each stream; the command may write more, which is dropped. */
  readonly maxOutputBytes: number;
  /**
   * Processes that the command has started and that run when it exits continue in the container instead of being
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

/** Bytes in both directions with back-pressure. */
export interface ByteStream {
  readonly readable: AsyncIterable<Uint8Array>;
  /** Resolves when the other side can take more. */
  write(chunk: Uint8Array): Promise<void>;
  /** Half-closes the writing side. */
  end(): void;
  destroy(): void;
}

export interface ProcessStreams {
  /** Undefined unless asked for. */
  readonly stdin: { write(chunk: Uint8Array): Promise<void>; end(): void } | undefined;
  readonly stdout: AsyncIterable<Uint8Array> | undefined;
  /** Undefined with a tty. */
  readonly stderr: AsyncIterable<Uint8Array> | undefined;
  resize(columns: number, rows: number): void;
  /** The exit code of an exec; of an attach, 0 when the container's streams ended. */
  readonly exited: Promise<number>;
  /** Kills an exec that has not exited, with all that it has started; detaches an attach. */
  close(): void;
}

export interface ContainerStats {
  readonly timestampMs: number;
  readonly cpuUsageCoreNanoSeconds: number;
  readonly memoryWorkingSetBytes: number;
  readonly memoryUsageBytes: number;
  readonly memoryRssBytes: number;
  readonly pids: number;
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
