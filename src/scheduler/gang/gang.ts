/**
 * Pod groups. All pending members are placed in one step. Nothing is reserved unless at least `minMember` members fit,
 * so that two groups never block each other with half of the resources each. Placed members are bound when enough of
 * them are ready. If that takes longer than the group's timeout, all are released. A group preempts pods of lower
 * priority only if enough members would then fit. Source: scheduler-plugins' Coscheduling.
 */

import type { PodInfo } from '../../api/podspec/scheduling/pod-info.ts';
import type { NodeName } from '../../base/brand.ts';
import type { Timer } from '../../base/time/clock.ts';
import type { Binding, Permit } from '../binding.ts';
import { minMemberOf, type PodGroup, timeoutMsOf } from '../core/pod-group.ts';
import type { Unschedulable } from '../core/schedule.ts';
import { decidePlacement } from '../cycle.ts';
import type { EpochState } from '../epoch-state.ts';
import { preemptForGroup } from './gang-preemption.ts';

interface Placed {
  readonly info: PodInfo;
  readonly node: NodeName;
}

interface Refused {
  readonly info: PodInfo;
  readonly decision: Unschedulable;
}

/** Schedules the pods of a group together or not at all. `first` is the member that the queue has returned. */
export async function placeGroup(
  state: EpochState,
  binding: Binding,
  key: string,
  first: PodInfo,
  group: PodGroup | undefined,
): Promise<void> {
  if (group === undefined) {
    binding.handleSchedulingFailure(first, refusal(`PodGroup "${key}" not found`));
    return;
  }
  const { queue, cluster, deps, members } = state;
  const uids = members.of(key);
  const minMember = minMemberOf(group);
  if (uids.size < minMember) {
    const message = `cannot find enough sibling pods, current pods number: ${uids.size}, minMember of group: ${minMember}`;
    binding.handleSchedulingFailure(first, refusal(message));
    return;
  }
  const pending = [first, ...[...uids].map((uid) => queue.take(uid)).filter((info) => info !== undefined)];
  const before = [...uids].filter((uid) => cluster.isPlaced(uid)).length;
  const placed: Placed[] = [];
  const refused: Refused[] = [];
  for (const info of pending) {
    const decision = await place(state, binding, info);
    if (decision.kind === 'bind') placed.push({ info, node: decision.node });
    else refused.push({ info, decision });
  }
  const missing = minMember - before - placed.length;
  if (missing > 0) {
    // Members with a nomination come first, because evictions have already made room for them. Otherwise a new member
    // would cause further evictions.
    const withoutNomination = ({ uid }: PodInfo): number => (cluster.nominatedNode(uid) === undefined ? 1 : 0);
    const candidates = refused.map(({ info }) => info).sort((a, b) => withoutNomination(a) - withoutNomination(b));
    const { preemptions, message } = preemptForGroup(state, candidates, missing, uids);
    for (const { info, node } of placed) binding.release(info, node);
    const why = message ?? refused[0]?.decision.message ?? 'members are gated';
    const decision = refusal(`${minMember - missing} of ${minMember} members of pod group "${key}" fit: ${why}`);
    // Members that fit stay nominated to their nodes while the victims of other members terminate.
    for (const { info, node } of placed) {
      const kept = preemptions.size === 0 ? undefined : { node, victims: [], displaced: [] };
      binding.handleSchedulingFailure(info, { ...decision, preemption: kept });
    }
    for (const info of candidates)
      binding.handleSchedulingFailure(info, { ...decision, preemption: preemptions.get(info.uid) });
    return;
  }
  for (const { info, decision } of refused) binding.handleSchedulingFailure(info, decision);
  const barrier = new Barrier(minMember - before, timeoutMsOf(group), key, state);
  deps.log.v(2, 'pod group placed', { group: key, pods: placed.length, before });
  for (const { info, node } of placed) binding.bind(info, node, barrier);
}

async function place(
  state: EpochState,
  binding: Binding,
  info: PodInfo,
): Promise<{ readonly kind: 'bind'; readonly node: NodeName } | Unschedulable> {
  const profile = state.profileOf(info);
  if (profile === undefined) return refusal('the pod belongs to another scheduler');
  const decision = await decidePlacement(state, info, profile, false);
  if (decision.kind !== 'bind') return decision;
  return binding.reserve(info, decision.node) ?? decision;
}

const refusal = (message: string): Unschedulable => ({
  kind: 'unschedulable',
  message,
  filters: new Set(['Coscheduling']),
  preemption: undefined,
});

/**
 * Lets members be bound when enough of them are ready. If a member fails before that, or after the timeout, all members
 * fail.
 */
class Barrier implements Permit {
  #missing: number;
  #error: Error | undefined;
  readonly #waiting: { resolve(): void; reject(error: Error): void }[] = [];
  readonly #timer: Timer;

  constructor(missing: number, timeoutMs: number, key: string, { deps }: EpochState) {
    this.#missing = missing;
    this.#timer = deps.clock.setTimer(timeoutMs, () =>
      this.failed(new Error(`pod group "${key}": members are not ready to be bound after ${timeoutMs / 1000}s`)),
    );
    if (missing <= 0) this.#timer.cancel();
  }

  ready(): Promise<void> {
    if (this.#error !== undefined) return Promise.reject(this.#error);
    this.#missing--;
    if (this.#missing <= 0) {
      this.#timer.cancel();
      for (const { resolve } of this.#waiting.splice(0)) resolve();
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
    });
  }

  failed(error: Error): void {
    if (this.#missing <= 0 || this.#error !== undefined) return;
    this.#error = error;
    this.#timer.cancel();
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}
