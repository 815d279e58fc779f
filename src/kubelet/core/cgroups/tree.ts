/**
 * Computes the desired cgroup tree of pods, parents first: kubepods, the QoS levels, and one level per pod. The runtime
 * manages the container level. Source: pkg/kubelet/cm node_container_manager, qos_container_manager,
 * pod_container_manager.
 */
import type { Pod } from '../../../api/generated/core/v1.ts';
import { toUid } from '../../../base/brand.ts';
import { type CgroupPath, kubepodsPath, podPath, qosPath, rootComponents } from './names.ts';
import {
  amountOf,
  CPU_PERIOD_US,
  MIN_SHARES,
  podAmount,
  podLevelAmount,
  qosClassOf,
  quotaOfMilli,
  sharesOfMilli,
} from './resources.ts';

/** Limits of one cgroup. A limit whose field is absent stays as it is in the kernel. */
export interface CgroupLimits {
  readonly cpuShares?: number;
  /** Microseconds per `cpuPeriodUs`; -1 for no limit. */
  readonly cpuQuotaUs?: number;
  readonly cpuPeriodUs?: number;
  /** Bytes; -1 for no limit. */
  readonly memoryLimitBytes?: number;
  /** Bytes that are never reclaimed. cgroup v2 only. */
  readonly memoryMinBytes?: number;
  /** -1 for no limit. */
  readonly pidsLimit?: number;
}

export interface CgroupNode {
  readonly path: CgroupPath;
  readonly limits: CgroupLimits;
}

export interface TreeOptions {
  /** Path components above kubepods; empty for the host's root. */
  readonly root: CgroupPath;
  /** Resources for all pods together (capacity minus reservations). */
  readonly allocatable: {
    readonly cpuMilli: number;
    readonly memoryBytes: number;
    /** Processes and threads; absent for no limit. */
    readonly pids?: number;
  };
  /** Processes and threads of each pod; 0 or less for no limit. */
  readonly podPidsLimit: number;
  readonly cpuCfsQuota: boolean;
  /** Protects the memory that pods request from reclaim (KEP-2570). cgroup v2 only. */
  readonly memoryQos?: boolean;
}

/** Cgroups of the host that are limited to their reservations. Source: pkg/kubelet/cm enforceExistingCgroup. */
export function reservedTree(
  reserved: readonly { readonly name: string; readonly amounts: Readonly<Record<string, string>> }[],
): CgroupNode[] {
  return reserved.map(({ name, amounts }) => {
    const container = { name, resources: { requests: amounts } };
    const [cpu = 0, memory = 0, pids = 0] = ['cpu', 'memory', 'pid'].map((each) =>
      amountOf(container, 'requests', each),
    );
    return {
      path: rootComponents(name),
      limits: {
        ...(cpu > 0 ? { cpuShares: sharesOfMilli(cpu) } : {}),
        ...(memory > 0 ? { memoryLimitBytes: memory } : {}),
        ...(pids > 0 ? { pidsLimit: pids } : {}),
      },
    };
  });
}

/** Share of the machine's process limit that is reserved for the host, and its minimum. */
const HOST_PIDS_SHARE = 0.1;
const LEAST_HOST_PIDS = 1_024;

/**
 * Limit of processes and threads of all pods together, at least half of the machine's limit.
 *
 * @param reserved Configured reservation for the host; 0 for a tenth of the machine's limit.
 */
export function allocatablePids(machine: number, reserved: number): number | undefined {
  if (machine <= 0) return undefined;
  const kept = reserved > 0 ? reserved : Math.max(LEAST_HOST_PIDS, Math.ceil(machine * HOST_PIDS_SHARE));
  return Math.max(machine - kept, Math.floor(machine / 2));
}

/** The levels above the pods, which must exist before the first pod starts. */
export function qosTree(pods: readonly Pod[], options: TreeOptions): CgroupNode[] {
  let burstableMilli = 0;
  let minimumBytes = 0;
  for (const pod of pods) {
    minimumBytes += memoryMinimum(pod, options);
    if (qosClassOf(pod) === 'Burstable') burstableMilli += podAmount(pod, 'requests', 'cpu');
  }
  // The kernel limits the memory protection of a cgroup to the protection of its parents.
  const minimum = minimumBytes === 0 ? {} : { memoryMinBytes: minimumBytes };
  return [
    {
      path: kubepodsPath(options.root),
      limits: {
        cpuShares: sharesOfMilli(options.allocatable.cpuMilli),
        memoryLimitBytes: options.allocatable.memoryBytes,
        ...(options.allocatable.pids === undefined ? {} : { pidsLimit: options.allocatable.pids }),
        ...minimum,
      },
    },
    { path: qosPath(options.root, 'BestEffort'), limits: { cpuShares: MIN_SHARES } },
    { path: qosPath(options.root, 'Burstable'), limits: { cpuShares: sharesOfMilli(burstableMilli), ...minimum } },
  ];
}

export function podNode(pod: Pod, options: TreeOptions): CgroupNode {
  const qos = qosClassOf(pod);
  const uid = toUid(pod.metadata?.uid);
  const limits: { -readonly [Key in keyof CgroupLimits]: CgroupLimits[Key] } = {
    cpuShares: qos === 'BestEffort' ? MIN_SHARES : sharesOfMilli(podAmount(pod, 'requests', 'cpu')),
  };
  if (limited(pod, 'cpu')) {
    limits.cpuPeriodUs = CPU_PERIOD_US;
    limits.cpuQuotaUs = options.cpuCfsQuota ? quotaOfMilli(podAmount(pod, 'limits', 'cpu')) : -1;
  }
  if (limited(pod, 'memory')) limits.memoryLimitBytes = podAmount(pod, 'limits', 'memory');
  const minimum = memoryMinimum(pod, options);
  if (minimum > 0) limits.memoryMinBytes = minimum;
  if (options.podPidsLimit > 0) limits.pidsLimit = options.podPidsLimit;
  return { path: podPath(options.root, qos, uid), limits };
}

/** Static pods of the control plane always keep their requested memory, so that user pods cannot displace them. */
const memoryMinimum = (pod: Pod, { memoryQos }: TreeOptions): number =>
  memoryQos === true || isControlPlane(pod) ? podAmount(pod, 'requests', 'memory') : 0;

const isControlPlane = (pod: Pod): boolean =>
  pod.metadata?.annotations?.['kubernetes.io/config.source'] === 'file' &&
  pod.metadata.labels?.['openshift.io/control-plane'] === 'true' &&
  qosClassOf(pod) === 'Burstable';

export function desiredTree(pods: readonly Pod[], options: TreeOptions): CgroupNode[] {
  return [...qosTree(pods, options), ...pods.map((pod) => podNode(pod, options))];
}

/**
 * Whether the pod's cgroup gets a limit: the pod has a pod-level limit, or every long-running container has a limit.
 * Otherwise the cgroup's limit would also restrict the containers that have none.
 */
function limited(pod: Pod, resource: string): boolean {
  if (podLevelAmount(pod, 'limits', resource) > 0) return true;
  const running = [
    ...(pod.spec?.containers ?? []),
    ...(pod.spec?.initContainers ?? []).filter((container) => container.restartPolicy === 'Always'),
  ];
  return running.length > 0 && running.every((container) => amountOf(container, 'limits', resource) > 0);
}
