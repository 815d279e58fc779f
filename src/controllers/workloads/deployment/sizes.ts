/** Limits on the number of pods during a roll-out. Source: upstream's deployment_util.go. */
import type { Deployment, ReplicaSet } from '../../../api/generated/apps/v1.ts';
import { resolveIntOrPercent } from '../../framework/core/int-or-percent.ts';

export interface Sizes {
  readonly replicas: number;
  readonly rolling: boolean;
  /** Number of pods above `replicas` that may exist. */
  readonly maxSurge: number;
  /** Number of pods below `replicas` that may be unavailable. */
  readonly maxUnavailable: number;
}

export function sizesOf(deployment: Deployment): Sizes {
  const replicas = deployment.spec?.replicas ?? 1;
  if (deployment.spec?.strategy?.type === 'Recreate')
    return { replicas, rolling: false, maxSurge: 0, maxUnavailable: 0 };
  const rolling = deployment.spec?.strategy?.rollingUpdate;
  const maxSurge = resolveIntOrPercent(rolling?.maxSurge, replicas, 'up', '25%');
  let maxUnavailable = resolveIntOrPercent(rolling?.maxUnavailable, replicas, 'down', '25%');
  // Validation rejects two zeros, but percentages may round to them. Then the roll-out could never progress.
  if (maxSurge === 0 && maxUnavailable === 0) maxUnavailable = 1;
  return { replicas, rolling: true, maxSurge, maxUnavailable: Math.min(maxUnavailable, replicas) };
}

export const specReplicas = (set: ReplicaSet): number => set.spec?.replicas ?? 1;
export const totalSpecReplicas = (sets: readonly ReplicaSet[]): number => sum(sets, specReplicas);
export const totalReplicas = (sets: readonly ReplicaSet[]): number => sum(sets, (set) => set.status?.replicas ?? 0);
export const totalReady = (sets: readonly ReplicaSet[]): number => sum(sets, (set) => set.status?.readyReplicas ?? 0);
export const totalAvailable = (sets: readonly ReplicaSet[]): number => sum(sets, availableReplicas);
export const availableReplicas = (set: ReplicaSet): number => set.status?.availableReplicas ?? 0;

function sum(sets: readonly ReplicaSet[], countOf: (set: ReplicaSet) => number): number {
  return sets.reduce((total, set) => total + countOf(set), 0);
}
