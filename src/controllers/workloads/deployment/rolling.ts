/**
 * Sizes of replica sets during a rolling update and while a deployment is scaled. Source: upstream's rolling.go and
 * sync.go.
 */

import type { ReplicaSet } from '../../../api/generated/apps/v1.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import { maxReplicasOf } from './annotations.ts';
import type { Draft } from './draft.ts';
import { availableReplicas, type Sizes, specReplicas, totalAvailable, totalSpecReplicas } from './sizes.ts';

/** Size of the current set: the number of replicas, limited by the surge, which limits the total number of pods. */
export function newSetSize(sizes: Sizes, current: ReplicaSet, old: readonly ReplicaSet[]): number {
  const size = specReplicas(current);
  if (!sizes.rolling || size >= sizes.replicas) return sizes.replicas;
  const total = totalSpecReplicas([...old, current]);
  const room = sizes.replicas + sizes.maxSurge - total;
  if (room <= 0) return size;
  return size + Math.min(room, sizes.replicas - size);
}

/** Shrinks old sets as far as availability allows: first pods that are not available, then available ones. */
export function reconcileOldSets(draft: Draft, sizes: Sizes, current: ReplicaSet, old: readonly ReplicaSet[]): void {
  if (totalSpecReplicas(old) === 0) return;
  const minAvailable = sizes.replicas - sizes.maxUnavailable;
  const currentUnavailable = specReplicas(current) - availableReplicas(current);
  const removable = totalSpecReplicas([...old, current]) - minAvailable - currentUnavailable;
  if (removable <= 0) return;
  let cleaned = 0;
  for (const set of old) {
    if (cleaned >= removable) break;
    const unhealthy = specReplicas(set) - availableReplicas(set);
    if (unhealthy <= 0) continue;
    const count = Math.min(removable - cleaned, unhealthy);
    draft.scale(set, specReplicas(set) - count);
    cleaned += count;
  }
  let spare = totalAvailable([...old, current]) - minAvailable;
  for (const set of old) {
    if (spare <= 0) break;
    const count = Math.min(specReplicas(set), spare);
    if (count === 0) continue;
    draft.scale(set, specReplicas(set) - count);
    spare -= count;
  }
}

/**
 * Changes the sizes of sets without a roll-out, for a deployment that is paused or whose number of replicas has
 * changed.
 */
export function scaleWithoutRollout(
  draft: Draft,
  sizes: Sizes,
  current: ReplicaSet | undefined,
  old: readonly ReplicaSet[],
): void {
  const all = current === undefined ? [...old] : [...old, current];
  const active = all.filter((set) => specReplicas(set) > 0);
  const only = active.length > 1 ? undefined : (active[0] ?? current ?? newest(old));
  if (only !== undefined) {
    draft.scale(only, sizes.replicas);
    return;
  }
  if (current !== undefined && isSaturated(current, sizes)) {
    for (const set of old) if (specReplicas(set) > 0) draft.scale(set, 0);
    return;
  }
  if (sizes.rolling) scaleProportionally(draft, sizes, active);
  // Sets of the strategy Recreate are not scaled proportionally. They only record the new number, so that the roll-out
  // continues.
  else for (const set of active) draft.scale(set, specReplicas(set));
}

function newest(sets: readonly ReplicaSet[]): ReplicaSet | undefined {
  return [...sets].sort((a, b) => createdMs(b) - createdMs(a))[0];
}

function isSaturated(set: ReplicaSet, sizes: Sizes): boolean {
  return specReplicas(set) === sizes.replicas && availableReplicas(set) === sizes.replicas;
}

/**
 * Distributes the difference among the active sets in proportion to their sizes. The largest set absorbs the rounding
 * error.
 */
function scaleProportionally(draft: Draft, sizes: Sizes, active: readonly ReplicaSet[]): void {
  const total = totalSpecReplicas(active);
  const allowed = sizes.replicas > 0 ? sizes.replicas + sizes.maxSurge : 0;
  const toAdd = allowed - total;
  const sorted = [...active].sort((a, b) => {
    const size = specReplicas(b) - specReplicas(a);
    if (size !== 0) return size;
    return toAdd > 0 ? createdMs(b) - createdMs(a) : createdMs(a) - createdMs(b);
  });
  let added = 0;
  const targets = sorted.map((set) => {
    const size = specReplicas(set);
    if (toAdd === 0) return size;
    const fraction = proportion(set, sizes, toAdd, added);
    added += fraction;
    return size + fraction;
  });
  sorted.forEach((set, index) => {
    const leftover = index === 0 && toAdd !== 0 ? toAdd - added : 0;
    draft.scale(set, Math.max(0, (targets[index] ?? 0) + leftover));
  });
}

function proportion(set: ReplicaSet, sizes: Sizes, toAdd: number, added: number): number {
  const size = specReplicas(set);
  if (size === 0) return 0;
  // Number of replicas of the deployment when this set was sized. If it is unknown, the share is unknown too and the
  // set keeps its size.
  const before = maxReplicasOf(set);
  const share =
    sizes.replicas === 0
      ? -size
      : before === undefined || before === 0
        ? 0
        : roundHalfAwayFromZero((size * (sizes.replicas + sizes.maxSurge)) / before) - size;
  const allowed = toAdd - added;
  return toAdd > 0 ? Math.min(share, allowed) : Math.max(share, allowed);
}

function roundHalfAwayFromZero(value: number): number {
  return value < 0 ? Math.ceil(value - 0.5) : Math.floor(value + 0.5);
}

const createdMs = (set: ReplicaSet): number => timeMs(set.metadata?.creationTimestamp);
