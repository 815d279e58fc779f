/**
 * Preemption for a pod group: victims are selected member by member, each with the earlier members assumed and without
 * the earlier victims. None is evicted unless enough members would fit.
 */
import type { PodInfo } from '../../api/podspec/scheduling/pod-info.ts';
import type { Preemption } from '../core/preemption.ts';
import type { Decision } from '../core/schedule.ts';
import { decide } from '../cycle.ts';
import type { EpochState } from '../state.ts';

/** Message while the victims of an earlier attempt are still terminating. */
export const WAITS_FOR_VICTIMS = 'not eligible due to a terminating pod';

export interface GroupPreemption {
  /** Preemptions by pod UID. Empty when preemption does not help. */
  readonly preemptions: ReadonlyMap<string, Preemption>;
  /** Reason why a member fits on no node. */
  readonly message: string | undefined;
}

/**
 * Selects nodes and victims for `missing` of the `refused` members while the other members are assumed on their nodes.
 * The cluster state is restored afterwards. Members that are subject to extenders do not preempt, because extenders
 * cannot consider the other victims.
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
  const decision = decide(state, info, profile);
  return decision instanceof Promise ? undefined : decision;
}

/** A member may fit without a victim of its own once those of the other members have left. */
const roomIn = (decision: Decision): Preemption | undefined =>
  decision.kind === 'bind' ? { node: decision.node, victims: [], displaced: [] } : decision.preemption;
