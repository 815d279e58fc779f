/**
 * Common types of filters. The names are those of upstream's plug-ins. When a filter rejects a pod, its name determines
 * the events that requeue the pod.
 */

import type { PodInfo } from '../../../api/podspec/scheduling/pod-info.ts';
import type { ClusterView } from '../cluster.ts';
import type { NodeInfo } from '../node-info.ts';
import type { PluginArgs } from '../plugin-args.ts';

/** Filters in upstream's order. If several filters reject a node, the message counts only the first one. */
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
  /** Whether evicting pods from the node cannot change the rejection. */
  readonly unresolvable: boolean;
  /** Whether the rejection concerns the pod on every node. The message then contains no counts of nodes. */
  readonly isOfPod?: boolean;
}

/**
 * Prepares a filter for one pod. The result checks single nodes; undefined if the filter accepts the pod on every node.
 */
export type Filter = (pod: PodInfo, view: ClusterView) => NodeCheck | undefined;

export type FilterFactory = (args: PluginArgs) => Filter;

/** Checks a node; undefined if the pod may run on it. */
export type NodeCheck = (node: NodeInfo) => Rejection | undefined;

/** A rejection that the eviction of pods may resolve. Upstream's code `Unschedulable`. */
export function reject(filter: FilterName, reason: string): Rejection {
  return { filter, reasons: [reason], unresolvable: false };
}

/** A rejection that the eviction of pods cannot resolve. Upstream's code `UnschedulableAndUnresolvable`. */
export function rejectUnresolvable(filter: FilterName, reason: string): Rejection {
  return { filter, reasons: [reason], unresolvable: true };
}
