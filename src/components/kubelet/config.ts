import type { Taint } from 'kubernetes-types/core/v1';
import type { ReservedPort } from '../../api/kinds/nodes/host-ports.ts';
import {
  DEFAULT_PRESSURE_TRANSITION_MS,
  type EvictionSettings,
  parseThresholds,
} from '../../core/eviction/thresholds.ts';
import type { ShutdownPeriod } from '../../core/podplan/shutdown.ts';
import { DEFAULT_RESOURCE_POLICIES, type ResourcePolicies } from './resources/policies.ts';

/** Absolute directories and files; the composition has already put them below `--root`. */
export interface KubeletPaths {
  /** `/var/lib/origin/openshift.local.volumes`, without links: pods live in `pods/<uid>` below it. */
  readonly volumes: string;
  /** Checkpoints and resource assignments; undefined: the parent of `volumes`. */
  readonly state?: string;
  /** `/var/lib/kubelet` where that leads to `volumes`: the paths that CSI drivers are handed. */
  readonly driverRoot?: string;
  /** `/var/log/pods`. */
  readonly podLogs: string;
  /** `/var/log/containers`: a link per container. */
  readonly containerLogs: string;
  /** Static pod manifests: `/etc/origin/node/pods`. */
  readonly staticPods: string;
  /** Whose disk the conditions and statistics of images are about. */
  readonly images: string;
}

export interface KubeletConfig {
  readonly nodeName: string;
  /**
   * Dotted or colon form, the primary family first; the node's InternalIPs and the addresses of host-network pods. Read
   * at every use, because the addresses of a host may change.
   */
  readonly nodeIps: readonly string[];
  readonly paths: KubeletPaths;
  /** HTTP(S) address of a manifest that is fetched every `fileCheckFrequencyMs`. */
  readonly manifestUrl?: string;
  /** Address and port of the HTTPS server; port 0 takes any. */
  readonly listen: { readonly address: string; readonly port: number };
  /** Name of the cgroup below which `kubepods` is made: `/` except in tests and nested machines. */
  readonly cgroupRoot: string;
  /** Quantities kept from pods: cpu, memory, ephemeral-storage. */
  readonly systemReserved: Readonly<Record<string, string>>;
  readonly kubeReserved: Readonly<Record<string, string>>;
  /** Cgroups that are held to what is reserved for them, below the root of the hierarchy. */
  readonly reservedCgroups: readonly { readonly name: string; readonly amounts: Readonly<Record<string, string>> }[];
  readonly resources: ResourcePolicies;
  /** Names, or prefixes that end in `*`, of sysctls besides upstream's safe ones that pods may set. */
  readonly allowedUnsafeSysctls: readonly string[];
  /** Directory of profiles that containers name as `localhostProfile`. */
  readonly seccompProfileRoot: string;
  readonly maxPods: number;
  /** Processes and threads of a pod; -1: no limit. */
  readonly podPidsLimit: number;
  readonly cpuCfsQuota: boolean;
  /** Containers that name no seccomp profile get RuntimeDefault instead of Unconfined. */
  readonly seccompDefault: boolean;
  readonly clusterDns: readonly string[];
  readonly clusterDomain: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly registerWithTaints: readonly Taint[];
  /**
   * Ports on which this host itself listens, whether or not the component runs at the moment: no pod gets them as host
   * ports.
   */
  readonly reservedPorts: readonly ReservedPort[];
  /** False for a host that only runs static pods and has no API server to register with. */
  readonly registerNode: boolean;
  readonly fileCheckFrequencyMs: number;
  readonly syncFrequencyMs: number;
  readonly nodeStatusUpdateFrequencyMs: number;
  readonly nodeStatusReportFrequencyMs: number;
  readonly nodeLeaseDurationSeconds: number;
  readonly containerLogMaxBytes: number;
  readonly containerLogMaxFiles: number;
  /** Between two looks at the sizes of logs. */
  readonly containerLogMonitorMs: number;
  readonly imageGcHighThresholdPercent: number;
  readonly imageGcLowThresholdPercent: number;
  readonly imageMinimumGcAgeMs: number;
  /** Images pulled at the same time. */
  readonly maxParallelImagePulls: number;
  readonly eviction: EvictionSettings;
  /** How long pods of each priority have when the machine shuts down; none: nothing delays a shutdown for pods. */
  readonly shutdownPeriods: readonly ShutdownPeriod[];
  /** Between two looks at what the node has left. */
  readonly evictionMonitoringMs: number;
}

/**
 * Defaults as upstream's KubeletConfiguration v1beta1 but for seccompDefault, 20 s file checks, OKD's node status, 250
 * pods and their processes, and logs that are checked sooner.
 */
export const DEFAULT_KUBELET_CONFIG = {
  cgroupRoot: '/',
  systemReserved: {},
  kubeReserved: {},
  reservedCgroups: [],
  resources: DEFAULT_RESOURCE_POLICIES,
  allowedUnsafeSysctls: [],
  seccompProfileRoot: '/var/lib/kubelet/seccomp',
  maxPods: 250,
  podPidsLimit: 4_096,
  cpuCfsQuota: true,
  seccompDefault: true,
  clusterDns: [],
  clusterDomain: 'cluster.local',
  nodeLabels: {},
  registerWithTaints: [],
  reservedPorts: [],
  registerNode: true,
  fileCheckFrequencyMs: 20_000,
  syncFrequencyMs: 60_000,
  nodeStatusUpdateFrequencyMs: 10_000,
  nodeStatusReportFrequencyMs: 300_000,
  nodeLeaseDurationSeconds: 40,
  containerLogMaxBytes: 10 * 1024 * 1024,
  containerLogMaxFiles: 5,
  containerLogMonitorMs: 2_000,
  imageGcHighThresholdPercent: 85,
  imageGcLowThresholdPercent: 80,
  imageMinimumGcAgeMs: 120_000,
  maxParallelImagePulls: 2,
  eviction: {
    thresholds: parseThresholds({}),
    pressureTransitionMs: DEFAULT_PRESSURE_TRANSITION_MS,
    maxPodGraceSeconds: 0,
  },
  shutdownPeriods: [],
  // Upstream looks every 10 s and is notified of memory; a disk is full sooner than that.
  evictionMonitoringMs: 1_000,
} as const satisfies Partial<KubeletConfig>;
