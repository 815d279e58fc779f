/** The common shape of filters. Names are upstream's plug-in names: they decide which events wake a rejected pod. */
import type { ClusterView } from '../cluster.ts';
import type { NodeInfo } from '../node-info.ts';
import type { PluginArgs } from '../plugin-args.ts';
import type { PodInfo } from '../pod-info.ts';

/** Upstream's order: the first rejection is the one a node is counted under. */
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

/** What may reject a pod: a filter, an extender, or its pod group. */
export type FilterName = (typeof FILTER_NAMES)[number] | 'Extender' | 'Coscheduling';

export interface Rejection {
  readonly filter: FilterName;
  readonly reasons: readonly string[];
  /** True when evicting pods from the node cannot help. */
  readonly unresolvable: boolean;
  /** The pod itself is at fault, whatever the node: the message counts no nodes. */
  readonly isOfPod?: boolean;
}

/** Work done once per pod; the result judges single nodes. Undefined: no objection to this pod, whatever the node. */
export type Filter = (pod: PodInfo, view: ClusterView) => NodeCheck | undefined;

export type FilterFactory = (args: PluginArgs) => Filter;

/** Undefined: the pod may run on the node. */
export type NodeCheck = (node: NodeInfo) => Rejection | undefined;

export function reject(filter: FilterName, reason: string, unresolvable: boolean): Rejection {
  return { filter, reasons: [reason], unresolvable };
}
