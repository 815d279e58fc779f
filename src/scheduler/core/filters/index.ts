/** Filters by the names of upstream's plug-ins. */

import type { PodInfo } from '../../../api/podspec/scheduling/pod-info.ts';
import type { ClusterView } from '../cluster.ts';
import { dynamicResources } from './devices.ts';
import type { FILTER_NAMES, Filter, FilterFactory, NodeCheck } from './filter.ts';
import { interPodAffinity } from './inter-pod-affinity.ts';
import { nodeAffinity, nodeName, nodePorts, nodeResourcesFit, nodeUnschedulable, taintToleration } from './node.ts';
import { topologySpread } from './topology-spread.ts';
import { nodeVolumeLimits } from './volume-limits.ts';
import { volumeRestrictions } from './volume-restrictions.ts';
import { volumeZone } from './volume-zone.ts';
import { volumeBinding } from './volumes.ts';

export const FILTERS: Readonly<Record<(typeof FILTER_NAMES)[number], FilterFactory>> = {
  NodeUnschedulable: () => nodeUnschedulable,
  NodeName: () => nodeName,
  TaintToleration: () => taintToleration,
  NodeAffinity: nodeAffinity,
  NodePorts: () => nodePorts,
  NodeResourcesFit: nodeResourcesFit,
  VolumeRestrictions: () => volumeRestrictions,
  NodeVolumeLimits: () => nodeVolumeLimits,
  VolumeBinding: () => volumeBinding,
  VolumeZone: () => volumeZone,
  DynamicResources: dynamicResources,
  PodTopologySpread: topologySpread,
  InterPodAffinity: () => interPodAffinity,
};

/** Combines all filters into one check, prepared for this pod. */
export function prepareFilters(filters: readonly Filter[], pod: PodInfo, view: ClusterView): NodeCheck {
  const checks = filters.map((filter) => filter(pod, view)).filter((check) => check !== undefined);
  return (node) => {
    for (const check of checks) {
      const rejection = check(node);
      if (rejection !== undefined) return rejection;
    }
    return undefined;
  };
}
