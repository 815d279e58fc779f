import type { ClusterView } from './cluster.ts';
import type { NodeInfo } from './node-info.ts';
import { countsWith } from './pod-counts.ts';

/** Returns the view as if `node` had the pods of `trial`, which must not change while the view is used. */
export function viewWith(view: ClusterView, node: NodeInfo, trial: NodeInfo): ClusterView {
  return {
    ...view,
    nodes: view.nodes.map((each) => (each === node ? trial : each)),
    counts: countsWith(view.counts, node, trial),
  };
}
