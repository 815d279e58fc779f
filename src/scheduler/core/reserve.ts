/**
 * Upstream's Reserve extension point. Resources other than those of the node (devices, volumes) are reserved in memory
 * as soon as a node is selected, so that the next decision accounts for them. They are released if the pod is not
 * bound. Source: the scheduling framework, KEP-624.
 */

import type { PodInfo } from '../../api/podspec/scheduling/pod-info.ts';
import type { NodeName } from '../../base/brand.ts';
import type { ClusterView } from './cluster.ts';
import type { Rejection } from './filters/filter.ts';
import type { NodeInfo } from './node-info.ts';

export interface ReservePlugin {
  /** Reserves the pod's resources on the node. After a rejection, this plug-in has reserved none. */
  reserve(pod: PodInfo, node: NodeInfo, view: ClusterView): Rejection | undefined;
  /** Releases the reservation, if the pod has one. */
  unreserve(pod: PodInfo, node: NodeName): void;
}

/** Calls all plug-ins in order. The first rejection releases all earlier reservations. */
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

/** Calls the Unreserve of all plug-ins in reverse order, as upstream. */
export function unreservePod(plugins: readonly ReservePlugin[], pod: PodInfo, node: NodeName): void {
  for (const plugin of plugins.toReversed()) plugin.unreserve(pod, node);
}
