/** The common shape of filters. Names are upstream's plug-in names: they decide which events wake a rejected pod. */
import type { ClusterView } from '../cluster.ts';
import type { NodeInfo } from '../node-info.ts';
import type { PodInfo } from '../pod-info.ts';

export type FilterName =
  | 'NodeUnschedulable'
  | 'NodeName'
  | 'TaintToleration'
  | 'NodeAffinity'
  | 'NodePorts'
  | 'NodeResourcesFit'
  | 'VolumeRestrictions'
  | 'VolumeBinding'
  | 'DynamicResources'
  | 'PodTopologySpread'
  | 'InterPodAffinity';

export interface Rejection {
  readonly filter: FilterName;
  readonly reasons: readonly string[];
  /** True when evicting pods from the node cannot help. */
  readonly unresolvable: boolean;
  /** The pod itself is at fault, whatever the node: the message counts no nodes. */
  readonly isOfPod?: boolean;
}

/** Work done once per pod; the result judges single nodes. */
export type Filter = (pod: PodInfo, view: ClusterView) => NodeCheck | undefined;

/** Undefined from a `Filter` means: has nothing to object for this pod. */
export type NodeCheck = (node: NodeInfo) => Rejection | undefined;

export function reject(filter: FilterName, reason: string, unresolvable: boolean): Rejection {
  return { filter, reasons: [reason], unresolvable };
}
