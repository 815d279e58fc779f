/**
 * A node whose host the gossip ring has declared dead is not ready before its lease expires. Its pods are evicted by
 * the lease alone: gossip can be wrong about a host that runs.
 */
import type { Node, NodeCondition } from 'kubernetes-types/core/v1';
import { FAILED_IN_RING, planUnknownConditions, readyCondition } from './health.ts';

export interface RingMemberState {
  /** The name of its node. */
  readonly name: string;
  readonly state: 'alive' | 'suspect' | 'dead' | 'left';
}

/**
 * Members that have been declared dead between two views. None where fewer than half of the members are alive: it is
 * this host that is cut off. A ring of two cannot agree.
 */
export function newlyFailed(before: readonly RingMemberState[], now: readonly RingMemberState[]): string[] {
  const present = now.filter(({ state }) => state === 'alive' || state === 'suspect').length;
  const total = now.filter(({ state }) => state !== 'left').length;
  if (present * 2 <= total) return [];
  const states = new Map(before.map(({ name, state }) => [name, state]));
  return now.flatMap(({ name, state }) => {
    const was = states.get(name);
    return state === 'dead' && (was === 'alive' || was === 'suspect') ? [name] : [];
  });
}

/** The conditions of a failed member's node; undefined: it is not ready already. */
export function planFailedNode(node: Node, nowMs: number): NodeCondition[] | undefined {
  const ready = readyCondition(node);
  return ready === undefined || ready.status === 'Unknown'
    ? undefined
    : planUnknownConditions(node, nowMs, FAILED_IN_RING);
}
