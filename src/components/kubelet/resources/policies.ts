/** How the node's CPUs, memory and swap are given to containers; as KubeletConfiguration names it. */
import type { TopologyPolicy } from '../../../core/topology/hints.ts';

export interface ResourcePolicies {
  readonly cpuManager: 'none' | 'static';
  /** List of CPUs that no container gets for itself; '': as many as `cpu` of what is reserved, rounded up. */
  readonly reservedCpus: string;
  readonly topologyManager: TopologyPolicy;
  readonly topologyScope: 'container' | 'pod';
  readonly memoryManager: 'None' | 'Static';
  /** Bytes by NUMA node that the memory manager does not assign. */
  readonly reservedMemory: ReadonlyMap<number, number>;
  readonly swapBehavior: 'NoSwap' | 'LimitedSwap';
  /** Undefined: `memory.min` and `memory.high` are left alone. Otherwise more than 0 and at most 1. */
  readonly memoryThrottlingFactor: number | undefined;
}

export const DEFAULT_RESOURCE_POLICIES: ResourcePolicies = {
  cpuManager: 'none',
  reservedCpus: '',
  topologyManager: 'none',
  topologyScope: 'container',
  memoryManager: 'None',
  reservedMemory: new Map(),
  swapBehavior: 'NoSwap',
  memoryThrottlingFactor: undefined,
};
