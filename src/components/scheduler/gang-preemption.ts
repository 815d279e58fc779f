/**
 * Room for a pod group: victims are chosen for member after member, each with the earlier members and without the
 * earlier victims, and none is evicted unless enough members would fit.
 */
import type { PodInfo } from '../../core/scheduling/pod-info.ts';
import type { Preemption } from '../../core/scheduling/preemption.ts';
import type { Decision } from '../../core/scheduling/schedule.ts';
import { decide } from './cycle.ts';
import type { EpochState } from './state.ts';

/** The victims of an earlier attempt are still leaving. */
export const WAITS_FOR_VICTIMS = 'not eligible due to a terminating pod';

export interface GroupRoom {
  /** By pod UID; empty: there is no room to be made. */
  readonly preemptions: ReadonlyMap<string, Preemption>;
  /** Why a member fits nowhere. */
  readonly message: string | undefined;
}

/**
 * Chooses nodes and victims for `missing` of the `refused` members, while the other members are assumed on their nodes.
 * The cluster is afterwards as it was. Members that extenders take part in do not preempt: extenders do not know about
 * the other victims.
 */
export function roomForGroup(
  state: EpochState,
  refused: readonly PodInfo[],
  missing: number,
  members: ReadonlySet<string>,
): GroupRoom {
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
  if (profile === undefined || state.extenders?.concern(info) === true) return undefined;
  const decision = decide(state, info, profile);
  return decision instanceof Promise ? undefined : decision;
}

/** A member may fit without a victim of its own once those of the others have left. */
const roomIn = (decision: Decision): Preemption | undefined =>
  decision.kind === 'bind' ? { node: decision.node, victims: [], displaced: [] } : decision.preemption;
