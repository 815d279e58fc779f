/**
 * cgroup v2 files that the runtime specification does not cover: swap limits and memory protection. Sources: KEP-2400
 * (node swap), KEP-2570 (memory QoS); pkg/kubelet/kuberuntime/kuberuntime_container_linux.go.
 */
import type { Container, Pod } from '../../../api/generated/core/v1.ts';
import { amountOf, qosClassOf } from './resources.ts';

const PAGE_BYTES = 4096;

export interface MemoryQos {
  /** Fraction of the range between request and limit at which reclaim starts to throttle the container. */
  readonly throttlingFactor: number;
  /** Allocatable memory of the node, used as the limit of a container without one. */
  readonly allocatableBytes: number;
}

/**
 * Swap limit in bytes. A Burstable container with a memory request below its limit gets a share of the node's swap in
 * proportion to its request; all others get none.
 */
export function swapLimit(pod: Pod, container: Container, nodeMemoryBytes: number, nodeSwapBytes: number): number {
  const request = amountOf(container, 'requests', 'memory');
  const limit = amountOf(container, 'limits', 'memory');
  if (nodeSwapBytes === 0 || qosClassOf(pod) !== 'Burstable' || request === 0 || request === limit) return 0;
  return Math.floor((request / nodeMemoryBytes) * nodeSwapBytes);
}

/**
 * `memory.min` is the request. `memory.high` throttles a container that is not Guaranteed before it reaches its limit.
 */
export function memoryProtection(pod: Pod, container: Container, qos: MemoryQos): Readonly<Record<string, string>> {
  const request = amountOf(container, 'requests', 'memory');
  const limit = amountOf(container, 'limits', 'memory');
  const files: Record<string, string> = request > 0 ? { 'memory.min': String(request) } : {};
  if (qosClassOf(pod) === 'Guaranteed' || request === limit) return files;
  const ceiling = limit > 0 ? limit : qos.allocatableBytes;
  const high = Math.floor((request + qos.throttlingFactor * (ceiling - request)) / PAGE_BYTES) * PAGE_BYTES;
  if (high > request) files['memory.high'] = String(high);
  return files;
}
