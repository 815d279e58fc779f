/** Arguments of plug-ins, with upstream's defaults. Source: k8s.io/kube-scheduler/config/v1. */
import type { NodeAffinity, TopologySpreadConstraint } from '../../api/generated/core/v1.ts';
import { CPU, MEMORY } from '../../api/podspec/scheduling/node-resources.ts';

export interface ResourceWeight {
  readonly name: string;
  readonly weight: number;
}

/** A point of the function from utilization (0 … 100) to score (0 … 10). */
export interface ShapePoint {
  readonly utilization: number;
  readonly score: number;
}

export interface ScoringStrategy {
  readonly type: 'LeastAllocated' | 'MostAllocated' | 'RequestedToCapacityRatio';
  readonly resources: readonly ResourceWeight[];
  /** Points in order of utilization; only for RequestedToCapacityRatio. */
  readonly shape: readonly ShapePoint[];
}

export interface PluginArgs {
  readonly scoringStrategy: ScoringStrategy;
  readonly ignoredResources: readonly string[];
  readonly ignoredResourceGroups: readonly string[];
  readonly balancedResources: readonly ResourceWeight[];
  readonly hardPodAffinityWeight: number;
  readonly ignorePreferredTermsOfExistingPods: boolean;
  readonly addedAffinity: NodeAffinity | undefined;
  /** Undefined for upstream's system defaults. */
  readonly defaultConstraints: readonly TopologySpreadConstraint[] | undefined;
  readonly minCandidateNodesPercentage: number;
  readonly minCandidateNodesAbsolute: number;
  /** Timeout for binding claims to volumes of the node. */
  readonly bindTimeoutSeconds: number;
  /** Timeout for the binding conditions of devices. */
  readonly bindingTimeoutMs: number;
}

const CPU_AND_MEMORY: readonly ResourceWeight[] = [
  { name: CPU, weight: 1 },
  { name: MEMORY, weight: 1 },
];

export const DEFAULT_ARGS: PluginArgs = {
  scoringStrategy: { type: 'LeastAllocated', resources: CPU_AND_MEMORY, shape: [] },
  ignoredResources: [],
  ignoredResourceGroups: [],
  balancedResources: CPU_AND_MEMORY,
  hardPodAffinityWeight: 1,
  ignorePreferredTermsOfExistingPods: false,
  addedAffinity: undefined,
  defaultConstraints: undefined,
  minCandidateNodesPercentage: 10,
  minCandidateNodesAbsolute: 100,
  bindTimeoutSeconds: 600,
  bindingTimeoutMs: 600_000,
};
