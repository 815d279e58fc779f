/**
 * Preemption for a pod group. Victims are selected for one member after the other. For each member, the earlier members
 * count as placed and their victims as removed. No pod is evicted unless enough members would fit.
 */
import type { PodInfo } from '../../api/podspec/scheduling/pod-info.ts';
import type { Preemption } from '../core/preemption.ts';
import type { Decision } from '../core/schedule.ts';
import { decidePlacement } from '../cycle.ts';
import type { EpochState } from '../epoch-state.ts';

/** Message while the victims of an earlier attempt are still terminating. */
export const WAITS_FOR_VICTIMS = 'not eligible due to a terminating pod';

export interface GroupPreemption {
  /** Preemptions by UID of the member. Empty if preemption does not make enough members fit. */
  readonly preemptions: ReadonlyMap<string, Preemption>;
  /** Reason why a member fits on no node. */
  readonly message: string | undefined;
}

/**
 * Selects nodes and victims for `missing` members of `refused`. The other members must be assumed on their nodes. The
 * cluster state is restored before the function returns. Members that extenders handle do not preempt, because
 * extenders cannot take the victims of other members into account.
 */
export function preemptForGroup(
  state: EpochState,
  refused: readonly PodInfo[],
  missing: number,
  members: ReadonlySet<string>,
): GroupPreemption {
  const { cluster } = state;
  const preemptions = new Map<string, Preemption>();
  const undo: (() => void)[] = [];
  let message: string | undefined;
  try {
    for (const info of refused) {
      if (preemptions.size === missing) break;
      const decision = decisionOf(state, info);
      if (decision === undefined) continue;
      const preemption = roomIn(decision);
      if (preemption !== undefined && !preemption.victims.some(({ uid }) => members.has(uid))) {
        preemptions.set(info.uid, preemption);
        for (const victim of preemption.victims) undo.push(cluster.without(victim.uid));
        cluster.assume(info, preemption.node);
        undo.push(() => cluster.forget(info.uid));
      } else if (decision.kind !== 'bind') {
        message ??= decision.message;
        if (decision.message.includes(WAITS_FOR_VICTIMS)) return { preemptions: new Map(), message: decision.message };
      }
    }
  } finally {
    for (const each of undo.reverse()) each();
  }
  return { preemptions: preemptions.size < missing ? new Map() : preemptions, message };
}

function decisionOf(state: EpochState, info: PodInfo): Decision | undefined {
  const profile = state.profileOf(info);
  if (profile === undefined || state.extenders?.isInterested(info) === true) return undefined;
  const decision = decidePlacement(state, info, profile);
  return decision instanceof Promise ? undefined : decision;
}

/**
 * Preemption for the decision. A member may need no victims of its own if the victims of other members make enough
 * room.
 */
const roomIn = (decision: Decision): Preemption | undefined =>
  decision.kind === 'bind' ? { node: decision.node, victims: [], displaced: [] } : decision.preemption;
