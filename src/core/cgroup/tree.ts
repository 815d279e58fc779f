/**
 * Pods + allocatable → the tree that ought to be, parents first: kubepods, then its QoS levels, then a level per pod.
 * The container level is the runtime's. Source: pkg/kubelet/cm node_container_manager, qos_container_manager,
 * pod_container_manager.
 */
import type { Pod } from 'kubernetes-types/core/v1';
import { type CgroupPath, kubepodsPath, podPath, qosPath } from './names.ts';
import {
  amountOf,
  CPU_PERIOD_US,
  MIN_SHARES,
  podAmount,
  qosClassOf,
  quotaOfMilli,
  sharesOfMilli,
} from './resources.ts';

/** Absent means: leave as it is. */
export interface CgroupLimits {
  readonly cpuShares?: number;
  /** µs per `cpuPeriodUs`; -1: none. */
  readonly cpuQuotaUs?: number;
  readonly cpuPeriodUs?: number;
  /** Bytes; -1: none. */
  readonly memoryLimitBytes?: number;
  /** Bytes that are never reclaimed; cgroup v2 only. */
  readonly memoryMinBytes?: number;
  /** -1: none. */
  readonly pidsLimit?: number;
}

export interface CgroupNode {
  readonly path: CgroupPath;
  readonly limits: CgroupLimits;
}

export interface TreeOptions {
  /** Components above kubepods; empty for the host's root. */
  readonly root: CgroupPath;
  /** What all pods together may use (capacity less what is reserved). */
  readonly allocatable: { readonly cpuMilli: number; readonly memoryBytes: number };
  /** 0: none. */
  readonly podPidsLimit: number;
  readonly cpuCfsQuota: boolean;
}

/** The levels above the pods; exists before the first pod starts. */
export function qosTree(pods: readonly Pod[], options: TreeOptions): CgroupNode[] {
  let burstableMilli = 0;
  let minimumBytes = 0;
  for (const pod of pods) {
    minimumBytes += memoryMinimum(pod);
    if (qosClassOf(pod) === 'Burstable') burstableMilli += podAmount(pod, 'requests', 'cpu');
  }
  // A cgroup is protected no better than the levels above it.
  const minimum = minimumBytes === 0 ? {} : { memoryMinBytes: minimumBytes };
  return [
    {
      path: kubepodsPath(options.root),
      limits: {
        cpuShares: sharesOfMilli(options.allocatable.cpuMilli),
        memoryLimitBytes: options.allocatable.memoryBytes,
        ...minimum,
      },
    },
    { path: qosPath(options.root, 'BestEffort'), limits: { cpuShares: MIN_SHARES } },
    { path: qosPath(options.root, 'Burstable'), limits: { cpuShares: sharesOfMilli(burstableMilli), ...minimum } },
  ];
}

export function podNode(pod: Pod, options: TreeOptions): CgroupNode {
  const qos = qosClassOf(pod);
  const uid = pod.metadata?.uid ?? '';
  const limits: { -readonly [Key in keyof CgroupLimits]: CgroupLimits[Key] } = {
    cpuShares: qos === 'BestEffort' ? MIN_SHARES : sharesOfMilli(podAmount(pod, 'requests', 'cpu')),
  };
  if (limited(pod, 'cpu')) {
    limits.cpuPeriodUs = CPU_PERIOD_US;
    limits.cpuQuotaUs = options.cpuCfsQuota ? quotaOfMilli(podAmount(pod, 'limits', 'cpu')) : -1;
  }
  if (limited(pod, 'memory')) limits.memoryLimitBytes = podAmount(pod, 'limits', 'memory');
  const minimum = memoryMinimum(pod);
  if (minimum > 0) limits.memoryMinBytes = minimum;
  if (options.podPidsLimit > 0) limits.pidsLimit = options.podPidsLimit;
  return { path: podPath(options.root, qos, uid), limits };
}

/** Static pods of the control plane keep what they request, so that pods of users cannot push them out of memory. */
const memoryMinimum = (pod: Pod): number =>
  pod.metadata?.annotations?.['kubernetes.io/config.source'] === 'file' &&
  pod.metadata.labels?.['openshift.io/control-plane'] === 'true' &&
  qosClassOf(pod) === 'Burstable'
    ? podAmount(pod, 'requests', 'memory')
    : 0;

export function desiredTree(pods: readonly Pod[], options: TreeOptions): CgroupNode[] {
  return [...qosTree(pods, options), ...pods.map((pod) => podNode(pod, options))];
}

/**
 * A pod-level limit holds only when every long-running container has one; otherwise it would bound the unlimited ones.
 */
function limited(pod: Pod, resource: string): boolean {
  const running = [
    ...(pod.spec?.containers ?? []),
    ...(pod.spec?.initContainers ?? []).filter((container) => container.restartPolicy === 'Always'),
  ];
  return running.length > 0 && running.every((container) => amountOf(container, 'limits', resource) > 0);
}
