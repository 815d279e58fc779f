/** Arguments of plug-ins, with upstream's defaults. Source: k8s.io/kube-scheduler/config/v1. */
import type { NodeAffinity, TopologySpreadConstraint } from '../../api/generated/core/v1.ts';
import { CPU, MEMORY } from '../../api/podspec/scheduling/node-resources.ts';

export interface ResourceWeight {
  readonly name: string;
  readonly weight: number;
}

/** Point of the function that maps the utilization (0 to 100) to a score (0 to 10). */
export interface ShapePoint {
  readonly utilization: number;
  readonly score: number;
}

export interface ScoringStrategy {
  readonly type: 'LeastAllocated' | 'MostAllocated' | 'RequestedToCapacityRatio';
  readonly resources: readonly ResourceWeight[];
  /** Points in ascending order of utilization. Only used with the type RequestedToCapacityRatio. */
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
  /** Default constraints of the profile. If undefined, upstream's system defaults apply. */
  readonly defaultConstraints: readonly TopologySpreadConstraint[] | undefined;
  readonly minCandidateNodesPercentage: number;
  readonly minCandidateNodesAbsolute: number;
  /** Maximum time in which the claims of a pod must be bound to volumes. */
  readonly bindTimeoutSeconds: number;
  /** Maximum time in which the binding conditions of devices must become true. */
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
