/** Policies for CPUs, memory and swap of containers, with the names of KubeletConfiguration. */
import type { TopologyPolicy } from '../core/topology/hints.ts';

export interface ResourcePolicies {
  readonly cpuManager: 'none' | 'static';
  /**
   * List of CPUs that no container uses exclusively. If '', as many CPUs as the reserved `cpu` amount, rounded up, are
   * reserved.
   */
  readonly reservedCpus: string;
  readonly topologyManager: TopologyPolicy;
  readonly topologyScope: 'container' | 'pod';
  readonly memoryManager: 'None' | 'Static';
  /** Bytes per NUMA node that the memory manager does not assign. */
  readonly reservedMemory: ReadonlyMap<number, number>;
  readonly swapBehavior: 'NoSwap' | 'LimitedSwap';
  /** Factor above 0 and up to 1. If undefined, `memory.min` and `memory.high` are not set. */
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
