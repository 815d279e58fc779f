/** All filters in upstream's order: the first objection is the one a node is counted under. */
import type { ClusterView } from '../cluster.ts';
import type { PodInfo } from '../pod-info.ts';
import { dynamicResources } from './devices.ts';
import type { Filter, NodeCheck } from './filter.ts';
import { interPodAffinity } from './inter-pod-affinity.ts';
import { nodeAffinity, nodeName, nodePorts, nodeResourcesFit, nodeUnschedulable, taintToleration } from './node.ts';
import { topologySpread } from './topology-spread.ts';
import { volumeBinding, volumeRestrictions } from './volumes.ts';

const FILTERS: readonly Filter[] = [
  nodeUnschedulable,
  nodeName,
  taintToleration,
  nodeAffinity,
  nodePorts,
  nodeResourcesFit,
  volumeRestrictions,
  volumeBinding,
  dynamicResources,
  topologySpread,
  interPodAffinity,
];

/** One check for all filters, prepared for this pod. */
export function prepareFilters(pod: PodInfo, view: ClusterView): NodeCheck {
  const checks = FILTERS.map((filter) => filter(pod, view)).filter((check) => check !== undefined);
  return (node) => {
    for (const check of checks) {
      const rejection = check(node);
      if (rejection !== undefined) return rejection;
    }
    return undefined;
  };
}
