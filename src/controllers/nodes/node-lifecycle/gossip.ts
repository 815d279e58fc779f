/**
 * Marks a node not ready before its lease expires if the gossip ring has declared its host dead. Only the lease decides
 * about the eviction of its pods, because gossip can wrongly report a running host as dead.
 */
import type { Node, NodeCondition } from '../../../api/generated/core/v1.ts';
import { FAILED_IN_RING, planUnknownConditions, readyCondition } from './health.ts';

export interface RingMemberState {
  /** Name of the member's node. */
  readonly name: string;
  readonly state: 'alive' | 'suspect' | 'dead' | 'left';
}

/**
 * Members that were declared dead between two views. Empty while several other members exist and this host reaches none
 * of them, because then this host itself is partitioned. A partition with a minority of the masters needs no check,
 * because its writes fail.
 */
export function newlyFailed(before: readonly RingMemberState[], now: readonly RingMemberState[]): string[] {
  if (isCutOff(now)) return [];
  const states = new Map(before.map(({ name, state }) => [name, state]));
  return now.flatMap(({ name, state }) => {
    const was = states.get(name);
    return state === 'dead' && (was === 'alive' || was === 'suspect') ? [name] : [];
  });
}

/** Members that were already dead in the first view of this process. */
export function failedBefore(before: readonly RingMemberState[], now: readonly RingMemberState[]): string[] {
  const known = new Set(before.map(({ name }) => name));
  return isCutOff(now) ? [] : now.flatMap(({ name, state }) => (state === 'dead' && !known.has(name) ? [name] : []));
}

function isCutOff(members: readonly RingMemberState[]): boolean {
  const present = members.filter(({ state }) => state === 'alive' || state === 'suspect').length;
  const dead = members.filter(({ state }) => state === 'dead').length;
  return present <= 1 && dead > 1;
}

/** Conditions for the node of a failed member; undefined if it already is not ready. */
export function planFailedNode(node: Node, nowMs: number): NodeCondition[] | undefined {
  const ready = readyCondition(node);
  return ready === undefined || ready.status === 'Unknown'
    ? undefined
    : planUnknownConditions(node, nowMs, FAILED_IN_RING);
}
