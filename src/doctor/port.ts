/** Results of `hyperedge doctor`, and the facts about a host and its cluster that the checks evaluate. */

/**
 * Result of a check. `skipped`: the check does not apply to this host. `unknown`: a fact could not be gathered, which
 * counts as a warning.
 */
export type Result = 'ok' | 'skipped' | 'unknown' | 'warning' | 'error';

export interface Finding {
  readonly result: Result;
  readonly evidence: string;
  /** Command or file change that fixes the cause. */
  readonly fix?: string;
}

export const GROUPS = ['kernel', 'network', 'time', 'disk', 'hardware', 'host', 'certificates', 'cluster'] as const;
export type Group = (typeof GROUPS)[number];

export interface CheckReport {
  readonly id: string;
  readonly title: string;
  readonly group: Group;
  /** Worst result of the findings. */
  readonly result: Result;
  readonly findings: readonly Finding[];
}

export interface DoctorReport {
  readonly host: string;
  readonly version: string;
  readonly time: string;
  readonly result: 'ok' | 'warning' | 'error';
  readonly counts: Readonly<Record<Result, number>>;
  readonly checks: readonly CheckReport[];
}

/** A fact, or the reason why it is not known. */
export type Gathered<T> =
  | { readonly state: 'known'; readonly value: T }
  /** The fact does not exist on this host, so checks that need it are skipped. */
  | { readonly state: 'absent'; readonly reason: string }
  | { readonly state: 'failed'; readonly reason: string };

export interface Source<T> {
  readonly timeoutMs: number;
  /** Gathers the fact. Throws CodedError 'absent' if it does not exist on this host. */
  read(signal: AbortSignal): Promise<T>;
}

export type FactName = keyof Facts;
export type FactSources = { readonly [K in FactName]: Source<Facts[K]> };
export type GatheredFacts = { readonly [K in FactName]?: Gathered<Facts[K]> };

export interface Facts {
  readonly host: HostFacts;
  readonly configuration: { readonly file: string; readonly problem: string | undefined };
  readonly cgroups: CgroupFacts;
  readonly kernel: KernelFacts;
  /** Values by name, such as `net.ipv4.ip_forward`. Settings that do not exist are missing. */
  readonly sysctls: Readonly<Record<string, string>>;
  readonly firewall: FirewallFacts;
  readonly ports: PortFacts;
  readonly clock: ClockFacts;
  readonly timeZone: { readonly link: string | undefined; readonly exists: boolean; readonly database: boolean };
  readonly identity: { readonly hostName: string; readonly machineId: string };
  readonly resolution: ResolutionFacts;
  readonly links: readonly LinkFacts[];
  readonly routes: readonly DefaultRoute[];
  readonly paths: readonly PeerPath[];
  /** Other hosts that use an address of this host, found by address conflict detection. */
  readonly conflicts: readonly { readonly address: string; readonly link: string; readonly mac: string }[];
  readonly areas: readonly AreaFacts[];
  readonly fsync: { readonly directory: string; readonly medianMs: number; readonly worstMs: number };
  readonly flash: readonly FlashFacts[];
  readonly writes: { readonly upMs: number; readonly disks: readonly DiskWrites[] };
  readonly memory: MemoryFacts;
  readonly processor: ProcessorFacts;
  readonly power: PowerFacts;
  readonly entropy: { readonly available: number; readonly generator: string | undefined };
  readonly programs: { readonly missing: readonly string[]; readonly bundled: boolean };
  readonly hostProcess: ProcessFacts;
  readonly unit: UnitFacts;
  readonly denials: { readonly source: string; readonly lines: readonly string[] };
  readonly journal: { readonly bytes: number; readonly directory: string; readonly limit: string | undefined };
  readonly leftovers: LeftoverFacts;
  readonly privateFiles: { readonly problem: string | undefined };
  readonly certificates: readonly CertificateFacts[];
  readonly kubeconfigs: readonly KubeconfigFacts[];
  readonly api: ApiFacts;
  readonly nodes: readonly NodeFacts[];
  readonly ring: readonly RingMember[];
  readonly store: StoreFacts;
  readonly pods: readonly PodFacts[];
  readonly registries: readonly RegistryFacts[];
  readonly podProbes: PodProbes;
  readonly staticPods: ManifestFacts;
  readonly deploy: ManifestFacts;
  readonly snapshots: SnapshotFacts;
  readonly update: UpdateFacts;
}

export interface HostFacts {
  readonly root: string;
  readonly nodeName: string;
  readonly nodeIp: string;
  /** Whether `nodeIp` is the address of the pod bridge, because the host has no address of its own. */
  readonly nodeIpIsBridge: boolean;
  /** Whether `node.ip` of the bootstrap file sets `nodeIp`. */
  readonly nodeIpGiven: boolean;
  /** Process ID of the host process; undefined if the process does not respond. */
  readonly pid: number | undefined;
  readonly roles: readonly string[];
  /** Whether certificates and configuration exist. */
  readonly installed: boolean;
  readonly clusterCidrs: readonly string[];
  readonly serviceCidrs: readonly string[];
  readonly bridge: string;
  readonly bootstrapFile: string;
  /** Model of the board, such as `Raspberry Pi 4 Model B Rev 1.4`; empty if unknown. */
  readonly model: string;
}

export interface CgroupFacts {
  /** Controllers listed in /proc/cgroups. */
  readonly known: readonly { readonly name: string; readonly enabled: boolean }[];
  /** Mounted hierarchies of cgroup version 1, with their controllers. */
  readonly v1: readonly { readonly mount: string; readonly controllers: readonly string[] }[];
  /** Mount of cgroup version 2, with the controllers of its root; undefined if it is not mounted. */
  readonly v2: { readonly mount: string; readonly controllers: readonly string[] } | undefined;
  readonly commandLine: string;
  /** File that sets the kernel command line on a Raspberry Pi; undefined on other machines. */
  readonly commandLineFile: { readonly path: string; readonly text: string } | undefined;
}

export type Presence = 'present' | 'loadable' | 'missing' | 'unknown';

export interface KernelFacts {
  readonly release: string;
  readonly namespaces: readonly string[];
  readonly seccompActions: readonly string[];
  readonly modules: Readonly<Record<string, Presence>>;
}

export interface FirewallFacts {
  /** Chains of the hooks forward and input. */
  readonly chains: readonly FirewallChain[];
  /** Active firewall services, such as ufw. */
  readonly services: readonly string[];
}

export interface FirewallChain {
  readonly family: string;
  readonly table: string;
  readonly name: string;
  readonly hook: 'forward' | 'input';
  readonly policy: 'accept' | 'drop';
  /** Rules that drop or reject packets, in the chain itself and in chains that it jumps to. */
  readonly drops: readonly FirewallRule[];
  /** Texts of the rules that accept packets or jump to another chain. */
  readonly accepts: readonly string[];
  /** Rules with a verdict in the order of their evaluation, with the rules of chains that the chain jumps to. */
  readonly steps: readonly FirewallStep[];
}

export interface FirewallStep {
  readonly chain: string;
  readonly handle: number;
  readonly text: string;
  /** A rejected packet counts as dropped. */
  readonly verdict: 'accept' | 'drop' | 'return';
  /** Conditions of the rule and of the jumps that lead to its chain. Empty if the rule applies to all packets. */
  readonly conditions: string;
}

export interface FirewallRule {
  readonly chain: string;
  readonly handle: number;
  readonly text: string;
  /** Whether the rule applies only to some packets. */
  readonly conditional: boolean;
}

export interface PortFacts {
  readonly wanted: readonly {
    readonly protocol: 'tcp' | 'udp';
    readonly port: number;
    readonly what: string;
    /** Field of the bootstrap file that sets the port. */
    readonly field: string;
  }[];
  readonly listeners: readonly {
    readonly protocol: 'tcp' | 'udp';
    readonly address: string;
    readonly port: number;
    readonly pid: number | undefined;
    readonly program: string;
    /** Whether the socket belongs to this host's own components. */
    readonly own: boolean;
  }[];
}

export interface ClockFacts {
  readonly nowMs: number;
  readonly releasedMs: number;
  /** Latest point in time that this host has recorded; 0 if unknown. A clock that is earlier is wrong. */
  readonly floorMs: number;
  readonly clocks: readonly string[];
  /** Whether a time service has synchronized the clock; undefined if unknown. */
  readonly synchronized: boolean | undefined;
}

export interface ResolutionFacts {
  readonly servers: readonly { readonly address: string; readonly problem: string | undefined }[];
  readonly ownName: string;
  readonly ownAddresses: readonly string[];
}

export interface LinkFacts {
  readonly name: string;
  readonly mtu: number;
  readonly state: string;
  /** IPv6 addresses of this link that another host on the link uses too. */
  readonly duplicates: readonly string[];
}

export interface DefaultRoute {
  readonly family: 4 | 6;
  readonly link: string;
  readonly gateway: string;
  readonly metric: number;
}

export interface PeerPath {
  readonly name: string;
  readonly address: string;
  readonly link: string;
  readonly linkMtu: number;
  /** Whether a packet of `linkMtu` bytes was answered when fragmentation is forbidden; undefined if it was not sent. */
  readonly whole: boolean | undefined;
  /** Whether a small packet was answered. */
  readonly small: boolean | undefined;
}

export interface AreaFacts {
  readonly directory: string;
  readonly what: string;
  /** Reason why the file system could not be read, for example because it did not respond in time. */
  readonly problem?: string;
  readonly mount?: string;
  readonly device?: string;
  readonly type?: string;
  readonly options?: readonly string[];
  readonly bytes?: number;
  readonly freeBytes?: number;
  readonly inodes?: number;
  readonly freeInodes?: number;
}

export interface FlashFacts {
  readonly device: string;
  readonly model: string;
  /** Used share of the rated lifetime in percent. For eMMC, the larger of the two estimates. */
  readonly usedPercent: number | undefined;
  /** State of the reserved blocks of eMMC: 1 normal, 2 warning, 3 urgent; undefined if unknown. */
  readonly reserve: number | undefined;
  readonly smartPassed: boolean | undefined;
}

export interface DiskWrites {
  readonly device: string;
  readonly model: string;
  readonly removable: boolean;
  readonly flash: boolean;
  readonly sizeBytes: number;
  readonly writtenBytes: number;
}

export interface MemoryFacts {
  readonly totalBytes: number;
  readonly availableBytes: number;
  readonly swaps: readonly { readonly device: string; readonly bytes: number; readonly usedBytes: number }[];
  /**
   * Share of the last minute in which all tasks waited for memory; undefined if the kernel has no pressure stall
   * information.
   */
  readonly fullPercent: number | undefined;
}

export interface ProcessorFacts {
  readonly policies: readonly {
    readonly name: string;
    readonly governor: string;
    readonly limitKhz: number;
    readonly maxKhz: number;
  }[];
  readonly throttleCount: number;
  readonly zones: readonly {
    readonly name: string;
    readonly celsius: number;
    /** Temperature from which the processor is slowed down; undefined if unknown. */
    readonly passiveCelsius: number | undefined;
    readonly criticalCelsius: number | undefined;
  }[];
}

export interface PowerFacts {
  /** Flags of the Raspberry Pi's firmware about low voltage and throttling; undefined on other machines. */
  readonly throttled: number | undefined;
  /** Whether the voltage monitor reports an alarm; undefined if there is no monitor. */
  readonly alarm: boolean | undefined;
}

export interface ProcessFacts {
  readonly pid: number | undefined;
  /** Reason why the control socket does not respond; undefined if it responds. */
  readonly problem: string | undefined;
  readonly ready: boolean | undefined;
  readonly notReady: string | undefined;
  readonly version: string | undefined;
  /** Names of the components that the roles of this host require; empty while the host process starts. */
  readonly expected: readonly string[];
  readonly components: readonly ComponentFacts[];
  /** Revisions whose files were changed and did not work, so that an earlier revision runs. */
  readonly failures: readonly FailedRevisionFacts[];
}

export interface FailedRevisionFacts {
  readonly operand: string;
  readonly component: string;
  readonly revision: number;
  /** Number of the revision that runs instead. */
  readonly running: number;
  readonly error: string;
}

export interface ComponentFacts {
  readonly name: string;
  readonly state: string;
  /** Number of restarts since the static pod was created. Planned restarts count too. */
  readonly restarts: number;
  /** Time since the last start; undefined if the component has not started. */
  readonly upMs: number | undefined;
}

export interface UnitFacts {
  /** LoadState of systemd: loaded, not-found, masked, bad-setting or error. */
  readonly load: string;
  readonly active: string;
  readonly enabled: string;
  readonly result: string;
  readonly restarts: number;
  readonly watchdogMs: number;
  readonly lastError: string | undefined;
}

export interface LeftoverFacts {
  /** Mounts of pods that are in no record of a container. */
  readonly mounts: readonly string[];
  /** Named network namespaces of pods that are in no record of a container. */
  readonly namespaces: readonly string[];
}

export interface CertificateFacts {
  readonly file: string;
  readonly subject: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** Reason why the certificate is not trusted; undefined if a trusted authority has issued it. */
  readonly chainProblem: string | undefined;
  /** Reason why the file cannot be read or parsed. */
  readonly problem: string | undefined;
}

export interface KubeconfigFacts {
  readonly file: string;
  readonly server: string;
  /** URL of the server that the host process would write to this file. */
  readonly expected: string;
  readonly problem: string | undefined;
}

export interface ApiFacts {
  readonly server: string;
  readonly version: string;
  readonly latencyMs: number;
  /** Names of the readiness checks that have failed, or the error of the request. */
  readonly problems: readonly string[];
}

export interface NodeFacts {
  readonly name: string;
  readonly machineId: string;
  readonly addresses: readonly string[];
  readonly ready: boolean;
  readonly reason: string;
  readonly pressures: readonly string[];
  readonly kubeletVersion: string;
  readonly architecture: string;
}

export interface RingMember {
  readonly name: string;
  readonly address: string;
  readonly state: string;
  readonly self: boolean;
  readonly version: string;
  /** Clock of the member minus the median of the clocks of its peers; undefined if unknown. */
  readonly clockOffsetMs: number | undefined;
}

export interface StoreFacts {
  readonly quorum: boolean;
  readonly quotaBytes: number;
  readonly members: readonly {
    readonly name: string;
    readonly state: string;
    readonly lag: number | undefined;
    readonly bytes: number | undefined;
    readonly errors: readonly string[];
  }[];
}

export interface PodFacts {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  /** Workload that created the pod; undefined if no workload has created it. */
  readonly owner: PodOwner | undefined;
  readonly waiting: readonly {
    readonly container: string;
    readonly reason: string;
    readonly message: string;
    readonly image: string;
    /** Architecture of the image, if it differs from that of the node. */
    readonly foreign?: string;
  }[];
}

export interface PodOwner {
  /** Kind in lower case, such as `deployment`. */
  readonly kind: string;
  readonly name: string;
  /** Whether the workload has an earlier revision to which it can be rolled back. */
  readonly hasEarlier: boolean;
}

export interface RegistryFacts {
  readonly registry: string;
  readonly proxy: string | undefined;
  readonly problem: string | undefined;
  /** Whether the registry responds if the proxy is not used. */
  readonly isDirect?: boolean;
  /** Destinations that are configured to be reached without the proxy. */
  readonly noProxy?: readonly string[];
  /** File on this host with a CA certificate that has issued the certificate of the registry. */
  readonly authorityFile?: string;
}

export interface PodProbes {
  /** Pod from whose network namespace the probes were sent. */
  readonly pod: string;
  readonly dns: { readonly server: string; readonly problem: string | undefined };
  readonly service: { readonly address: string; readonly problem: string | undefined };
  readonly peers: readonly { readonly pod: string; readonly address: string; readonly problem: string | undefined }[];
}

/** State of a directory whose files the host applies. */
export interface ManifestFacts {
  readonly directory: string;
  readonly problems: readonly ManifestProblem[];
  readonly files: number;
}

export interface ManifestProblem {
  readonly file: string;
  readonly problem: string;
}

export interface SnapshotFacts {
  readonly directory: string;
  /** Time of the newest file that can be restored. */
  readonly newestMs: number | undefined;
  readonly damaged: readonly { readonly file: string; readonly problem: string }[];
}

export interface UpdateFacts {
  readonly current: string;
  readonly available: readonly string[];
  readonly desired: string;
  readonly failing: string | undefined;
  /** Last update of this host, if it was not completed. */
  readonly unfinished: string | undefined;
  /** Error of a damaged record of the last update, with its remedy. */
  readonly damaged?: string;
  /**
   * Release to which this host can return, and the observation that suggests it. Set only while no API server responds
   * to this master, or while components restart often soon after an update.
   */
  readonly former?: { readonly version: string; readonly cause: string };
}
