/** Makes the decision about one pod. It is synchronous unless extenders must be called. */

import type { PodInfo } from '../api/podspec/scheduling/pod-info.ts';
import { messageOf } from '../base/errors.ts';
import { rejectUnresolvable } from './core/filters/filter.ts';
import { choosePreemption, preemptionCandidates } from './core/preemption.ts';
import type { Profile } from './core/profile.ts';
import {
  chooseNode,
  type Decision,
  findNodes,
  type ScheduleInput,
  schedulePod,
  type Unschedulable,
  unschedulableMessage,
} from './core/schedule.ts';
import { disruptionBudgets } from './data-sources.ts';
import type { EpochState } from './epoch-state.ts';
import type { Extenders } from './extenders.ts';

/** Decides about the pod. If `mayPreempt` is false, no pods are preempted. */
export function decidePlacement(
  state: EpochState,
  pod: PodInfo,
  profile: Profile,
  mayPreempt = true,
): Decision | Promise<Decision> {
  const { cluster, deps, extenders } = state;
  const input: ScheduleInput = {
    pod,
    cluster,
    view: state.view(),
    profile: mayPreempt ? profile : { ...profile, preempts: false },
    budgets: disruptionBudgets(state.more),
    random: () => deps.random.random(),
  };
  return extenders?.isInterested(pod) === true ? decideWith(extenders, input) : schedulePod(input);
}

async function decideWith(extenders: Extenders, input: ScheduleInput): Promise<Decision> {
  try {
    const found = await extenders.filter(input.pod, findNodes(input));
    if (found.feasible.length > 0) {
      const extra = await extenders.prioritize(input.pod, found.feasible);
      // Nodes may have been deleted while the extenders were called.
      const present = found.feasible.filter(({ name }) => input.cluster.node(name) !== undefined);
      const chosen = chooseNode(input, present, extra);
      if (chosen !== undefined) return { kind: 'bind', node: chosen.name, feasible: present.length };
    }
    const failed = unschedulableMessage(input, found.rejections, { mayPreempt: false });
    return input.profile.preempts ? await makeRoom(extenders, input, failed, found.rejections) : failed;
  } catch (error) {
    const rejection = rejectUnresolvable('Extender', messageOf(error));
    return {
      kind: 'unschedulable',
      message: rejection.reasons.join(),
      filters: new Set([rejection.filter]),
      preemption: undefined,
    };
  }
}

async function makeRoom(
  extenders: Extenders,
  input: ScheduleInput,
  failed: Unschedulable,
  rejections: Parameters<typeof unschedulableMessage>[1],
): Promise<Decision> {
  const { candidates, message } = preemptionCandidates({ ...input, rejections });
  const preemption = choosePreemption(input, await extenders.preempt(input.pod, candidates));
  return {
    ...failed,
    message: message === '' ? failed.message : `${failed.message} preemption: ${message}`,
    preemption,
  };
}
