/**
 * State of zones. When many nodes stop reporting at once, the fault is probably in the network between this controller
 * and them. Source: upstream's nodelifecycle zone states.
 */
import type { Node } from '../../../api/generated/core/v1.ts';

export interface AssessedNode {
  readonly node: Node;
  /** Whether the node reports and is Ready. */
  readonly isHealthy: boolean;
}

/** State of a zone. 'full': no node is Ready. 'partial': most nodes are not Ready. */
export type ZoneState = 'normal' | 'partial' | 'full';

/**
 * Share of unhealthy nodes from which a zone is 'partial' (upstream's value), and minimum number of unhealthy nodes for
 * it.
 */
const UNHEALTHY_SHARE = 0.55;
const MIN_UNHEALTHY = 3;

export function zoneOf(node: Node): string {
  const labels = node.metadata?.labels ?? {};
  return `${labels['topology.kubernetes.io/region'] ?? ''}/${labels['topology.kubernetes.io/zone'] ?? ''}`;
}

export function zoneStates(nodes: readonly AssessedNode[]): Map<string, ZoneState> {
  const counts = new Map<string, { healthy: number; unhealthy: number }>();
  for (const { node, isHealthy } of nodes) {
    const zone = zoneOf(node);
    const count = counts.get(zone) ?? { healthy: 0, unhealthy: 0 };
    counts.set(zone, {
      ...count,
      [isHealthy ? 'healthy' : 'unhealthy']: count[isHealthy ? 'healthy' : 'unhealthy'] + 1,
    });
  }
  const states = new Map<string, ZoneState>();
  for (const [zone, { healthy, unhealthy }] of counts) {
    const isPartial = unhealthy >= MIN_UNHEALTHY && unhealthy / (healthy + unhealthy) >= UNHEALTHY_SHARE;
    states.set(zone, healthy === 0 && unhealthy > 0 ? 'full' : isPartial ? 'partial' : 'normal');
  }
  return states;
}

/**
 * Whether pods of a node in the zone may be evicted. If no node reports, this controller is partitioned and no pod is
 * evicted. If one zone is silent while another one works, that zone has failed. In small zones with mostly failed nodes
 * evictions stop as well (upstream only slows them down from 50 nodes on).
 */
export function mayEvict(zone: string, states: ReadonlyMap<string, ZoneState>): boolean {
  const all = [...states.values()];
  if (all.every((state) => state === 'full')) return false;
  return states.get(zone) !== 'partial';
}
