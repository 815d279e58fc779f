/**
 * Common types of filters. The names are those of upstream's plug-ins; they determine the events that requeue a
 * rejected pod.
 */

import type { PodInfo } from '../../../api/podspec/scheduling/pod-info.ts';
import type { ClusterView } from '../cluster.ts';
import type { NodeInfo } from '../node-info.ts';
import type { PluginArgs } from '../plugin-args.ts';

/** Upstream's order. A node is counted under the first filter that rejects it. */
export const FILTER_NAMES = [
  'NodeUnschedulable',
  'NodeName',
  'TaintToleration',
  'NodeAffinity',
  'NodePorts',
  'NodeResourcesFit',
  'VolumeRestrictions',
  'NodeVolumeLimits',
  'VolumeBinding',
  'VolumeZone',
  'DynamicResources',
  'PodTopologySpread',
  'InterPodAffinity',
] as const;

/** Sources of a rejection: a filter, an extender, or the pod group. */
export type FilterName = (typeof FILTER_NAMES)[number] | 'Extender' | 'Coscheduling';

export interface Rejection {
  readonly filter: FilterName;
  readonly reasons: readonly string[];
  /** True if evicting pods from the node cannot help. */
  readonly unresolvable: boolean;
  /** The rejection concerns the pod on every node, so the message contains no node counts. */
  readonly isOfPod?: boolean;
}

/**
 * Prepares a filter for one pod; the result checks single nodes. Undefined if the filter accepts the pod on every node.
 */
export type Filter = (pod: PodInfo, view: ClusterView) => NodeCheck | undefined;

export type FilterFactory = (args: PluginArgs) => Filter;

/** Undefined if the pod may run on the node. */
export type NodeCheck = (node: NodeInfo) => Rejection | undefined;

export function reject(filter: FilterName, reason: string, unresolvable: boolean): Rejection {
  return { filter, reasons: [reason], unresolvable };
}
