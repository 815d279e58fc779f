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
 * Members that have been declared dead between two views. None while this host reaches none of several others: then it
 * is cut off itself. A master that is cut off with a minority of the masters cannot write.
 */
export function newlyFailed(before: readonly RingMemberState[], now: readonly RingMemberState[]): string[] {
  if (isCutOff(now)) return [];
  const states = new Map(before.map(({ name, state }) => [name, state]));
  return now.flatMap(({ name, state }) => {
    const was = states.get(name);
    return state === 'dead' && (was === 'alive' || was === 'suspect') ? [name] : [];
  });
}

/** Members that were dead already when this process got its first view of them. */
export function failedBefore(before: readonly RingMemberState[], now: readonly RingMemberState[]): string[] {
  const known = new Set(before.map(({ name }) => name));
  return isCutOff(now) ? [] : now.flatMap(({ name, state }) => (state === 'dead' && !known.has(name) ? [name] : []));
}

function isCutOff(members: readonly RingMemberState[]): boolean {
  const present = members.filter(({ state }) => state === 'alive' || state === 'suspect').length;
  const dead = members.filter(({ state }) => state === 'dead').length;
  return present <= 1 && dead > 1;
}

/** The conditions of a failed member's node; undefined: it is not ready already. */
export function planFailedNode(node: Node, nowMs: number): NodeCondition[] | undefined {
  const ready = readyCondition(node);
  return ready === undefined || ready.status === 'Unknown'
    ? undefined
    : planUnknownConditions(node, nowMs, FAILED_IN_RING);
}
