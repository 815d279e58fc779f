/**
 * Upstream's Reserve extension point: what a pod takes beside the room on its node (devices, volumes) is taken in
 * memory as soon as its node is chosen, so that the next decision sees it, and is released when the pod is not bound
 * there.
 * Source: the scheduling framework, KEP-624.
 */
import type { ClusterView } from './cluster.ts';
import type { Rejection } from './filters/filter.ts';
import type { NodeInfo } from './node-info.ts';
import type { PodInfo } from './pod-info.ts';

export interface ReservePlugin {
  /** Takes what the pod needs on the node. A rejection leaves nothing taken by this plug-in. */
  reserve(pod: PodInfo, node: NodeInfo, view: ClusterView): Rejection | undefined;
  /** Releases it. Has no effect for a pod that holds nothing. */
  unreserve(pod: PodInfo, node: string): void;
}

/** All plug-ins in order, or none: the first rejection releases what was reserved before it. */
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

/** In reverse order, as upstream. */
export function unreservePod(plugins: readonly ReservePlugin[], pod: PodInfo, node: string): void {
  for (const plugin of plugins.toReversed()) plugin.unreserve(pod, node);
}
