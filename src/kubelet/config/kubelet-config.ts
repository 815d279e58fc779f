import type { Taint } from '../../api/generated/core/v1.ts';
import type { ReservedPort } from '../../api/kinds/nodes/nodes/host-ports.ts';
import type { NodeName } from '../../base/brand.ts';
import { DEFAULT_PRESSURE_TRANSITION_MS, type EvictionSettings, parseThresholds } from '../core/eviction/thresholds.ts';
import type { ShutdownPeriod } from '../core/pod-plan/shutdown.ts';
import { DEFAULT_RESOURCE_POLICIES, type ResourcePolicies } from '../resources/policies.ts';

/** Absolute directories and files. The composition has already resolved them below `--root`. */
export interface KubeletPaths {
  /** `/var/lib/origin/openshift.local.volumes` with symbolic links resolved. Pods live in `pods/<uid>` below it. */
  readonly volumes: string;
  /** Directory of checkpoints and resource assignments. Default: the parent of `volumes`. */
  readonly state?: string;
  /** Path that CSI drivers receive in place of `volumes`: `/var/lib/kubelet` if that path is a link to `volumes`. */
  readonly driverRoot?: string;
  readonly podLogs: string;
  readonly containerLogs: string;
  readonly staticPods: string;
  /** Directory of the embedded provisioner's volumes. Without it, the node mounts no such volumes. */
  readonly localVolumes?: string;
  /** Image directory. The disk conditions and image statistics describe its file system. */
  readonly images: string;
}

export interface KubeletConfig {
  readonly nodeName: NodeName;
  /**
   * Node addresses in dotted or colon form, primary family first. They become the node's InternalIPs and the addresses
   * of host-network pods. Read at every use, because the addresses of a host may change.
   */
  readonly nodeIps: readonly string[];
  readonly paths: KubeletPaths;
  /** HTTP(S) address of a manifest that is fetched every `fileCheckFrequencyMs`. */
  readonly manifestUrl?: string;
  /** Address and port of the HTTPS server. Port 0 selects a free port. */
  readonly listen: { readonly address: string; readonly port: number };
  /** Name of the cgroup that contains `kubepods`: `/` except in tests and nested machines. */
  readonly cgroupRoot: string;
  /** Quantities reserved from pods: cpu, memory, ephemeral-storage. */
  readonly systemReserved: Readonly<Record<string, string>>;
  readonly kubeReserved: Readonly<Record<string, string>>;
  /** Cgroups that are limited to the resources reserved for them, below the root of the hierarchy. */
  readonly reservedCgroups: readonly { readonly name: string; readonly amounts: Readonly<Record<string, string>> }[];
  readonly resources: ResourcePolicies;
  /** Unsafe sysctls that pods may set: names, or prefixes that end in `*`. */
  readonly allowedUnsafeSysctls: readonly string[];
  /** Directory of seccomp profiles that containers reference as `localhostProfile`. */
  readonly seccompProfileRoot: string;
  readonly maxPods: number;
  /** Maximum number of processes and threads of a pod. -1 means no limit. */
  readonly podPidsLimit: number;
  readonly cpuCfsQuota: boolean;
  /** Whether containers without a seccomp profile get RuntimeDefault instead of Unconfined. */
  readonly seccompDefault: boolean;
  readonly clusterDns: readonly string[];
  readonly clusterDomain: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly registerWithTaints: readonly Taint[];
  /**
   * Ports that components of this host use, including components that are stopped at present. Pods cannot use them as
   * host ports.
   */
  readonly reservedPorts: readonly ReservedPort[];
  readonly registerNode: boolean;
  readonly fileCheckFrequencyMs: number;
  readonly syncFrequencyMs: number;
  readonly nodeStatusUpdateFrequencyMs: number;
  readonly nodeStatusReportFrequencyMs: number;
  readonly nodeLeaseDurationSeconds: number;
  readonly containerLogMaxBytes: number;
  readonly containerLogMaxFiles: number;
  /** Interval between checks of log sizes. */
  readonly containerLogMonitorMs: number;
  readonly imageGcHighThresholdPercent: number;
  readonly imageGcLowThresholdPercent: number;
  readonly imageMinimumGcAgeMs: number;
  /** Maximum number of concurrent image pulls. */
  readonly maxParallelImagePulls: number;
  readonly eviction: EvictionSettings;
  /** Grace periods by pod priority at a machine shutdown. If the list is empty, a shutdown does not wait for pods. */
  readonly shutdownPeriods: readonly ShutdownPeriod[];
  /** Interval between checks of the eviction signals. */
  readonly evictionMonitoringMs: number;
}

/**
 * Upstream's defaults of KubeletConfiguration v1beta1, except for seccompDefault, 20 s file checks, OKD's node status
 * settings, 250 pods, the process limit and shorter log checks.
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
  // Upstream checks every 10 s and uses memory notifications. A disk can fill up faster than that.
  evictionMonitoringMs: 1_000,
} as const satisfies Partial<KubeletConfig>;
