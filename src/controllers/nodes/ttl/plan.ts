/**
 * Time for which kubelets may cache secrets and config maps, by size of the cluster. Source: upstream's ttl controller.
 */
import type { Node } from '../../../api/generated/core/v1.ts';

export const TTL_ANNOTATION = 'node.alpha.kubernetes.io/ttl';

interface Step {
  readonly min: number;
  readonly max: number;
  readonly seconds: number;
}

/** TTL by number of nodes. The ranges overlap, so that the TTL does not alternate near a border. */
const STEPS: readonly Step[] = [
  { min: 0, max: 100, seconds: 0 },
  { min: 90, max: 500, seconds: 15 },
  { min: 450, max: 1000, seconds: 30 },
  { min: 900, max: 2000, seconds: 60 },
  { min: 1800, max: Number.POSITIVE_INFINITY, seconds: 300 },
];

/** TTL for a cluster of `nodes` nodes, given the `current` TTL. */
export function ttlSeconds(nodes: number, current: number): number {
  let index = Math.max(
    0,
    STEPS.findIndex((step) => step.seconds === current),
  );
  while (index < STEPS.length - 1 && nodes > (STEPS[index]?.max ?? 0)) index++;
  while (index > 0 && nodes < (STEPS[index]?.min ?? 0)) index--;
  return STEPS[index]?.seconds ?? 0;
}

/** New value of the annotation; undefined if unchanged. */
export function planTtl(node: Node, seconds: number): string | undefined {
  const wanted = String(seconds);
  return node.metadata?.annotations?.[TTL_ANNOTATION] === wanted ? undefined : wanted;
}
