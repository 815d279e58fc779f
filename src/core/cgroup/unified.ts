/**
 * Files of cgroup v2 that the runtime specification has no field for: swap, and the protection of memory. Sources:
 * KEP-2400 (node swap), KEP-2570 (memory QoS); pkg/kubelet/kuberuntime/kuberuntime_container_linux.go.
 */
import type { Container, Pod } from 'kubernetes-types/core/v1';
import { amountOf, qosClassOf } from './resources.ts';

const PAGE_BYTES = 4096;

export interface MemoryQos {
  /** Part of the room between request and limit that is used before reclaim slows the container down. */
  readonly throttlingFactor: number;
  /** Of the node; stands in for the limit of a container without one. */
  readonly allocatableBytes: number;
}

/**
 * Bytes of swap: a Burstable container that requests memory and less than its limit has its request's part of the
 * node's swap; every other one has none.
 */
export function swapLimit(pod: Pod, container: Container, nodeMemoryBytes: number, nodeSwapBytes: number): number {
  const request = amountOf(container, 'requests', 'memory');
  const limit = amountOf(container, 'limits', 'memory');
  if (nodeSwapBytes === 0 || qosClassOf(pod) !== 'Burstable' || request === 0 || request === limit) return 0;
  return Math.floor((request / nodeMemoryBytes) * nodeSwapBytes);
}

/** `memory.min` is the request; `memory.high` throttles a container that is not Guaranteed before its limit ends it. */
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
