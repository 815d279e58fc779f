/**
 * Upstream's Reserve extension point. As soon as a node is selected, devices and volumes for the pod are reserved in
 * memory, so that the next decision accounts for them. They are released if the pod is not bound. Source: the
 * scheduling framework, KEP-624.
 */

import type { PodInfo } from '../../api/podspec/scheduling/pod-info.ts';
import type { NodeName } from '../../base/brand.ts';
import type { ClusterView } from './cluster.ts';
import type { Rejection } from './filters/filter.ts';
import type { NodeInfo } from './node-info.ts';

export interface ReservePlugin {
  /** Reserves the pod's resources on the node. If it returns a rejection, nothing is reserved. */
  reserve(pod: PodInfo, node: NodeInfo, view: ClusterView): Rejection | undefined;
  /** Releases the pod's reservation. Does nothing if the pod has none. */
  unreserve(pod: PodInfo, node: NodeName): void;
}

/** Calls the plug-ins in order. If one rejects the pod, the reservations of earlier plug-ins are released. */
export function reservePod(
  plugins: readonly ReservePlugin[],
  pod: PodInfo,
  node: NodeInfo,
  view: ClusterView,
): Rejection | undefined {
  for (const [index, plugin] of plugins.entries()) {
    const rejection = plugin.reserve(pod, node, view);
    if (rejection === undefined) continue;
    unreservePod(plugins.slice(0, index), pod, node.name);
    return rejection;
  }
  return undefined;
}

/** Calls Unreserve of all plug-ins in reverse order, as in upstream. */
export function unreservePod(plugins: readonly ReservePlugin[], pod: PodInfo, node: NodeName): void {
  for (const plugin of plugins.toReversed()) plugin.unreserve(pod, node);
}
