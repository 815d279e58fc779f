/**
 * Pods whose allocated devices have NoExecute taints that the claims do not tolerate. Source: KEP-5055;
 * k8s.io/kubernetes/pkg/controller/devicetainteviction.
 */

import type {
  AllocationResult,
  DeviceTaint,
  DeviceTaintRule,
  DeviceToleration,
  ResourceClaim,
  ResourceSlice,
} from '../../../api/devices/types.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { transitionTime } from '../../../api/meta/conditions.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { isPodTerminal } from '../../framework/core/pods.ts';

/** NoExecute taints by driver, pool and device, from the newest generation of each pool. */
export function noExecuteTaints(slices: readonly ResourceSlice[]): Map<string, DeviceTaint[]> {
  const generations = new Map<string, number>();
  for (const { spec } of slices) {
    const pool = `${spec?.driver ?? ''}/${spec?.pool?.name ?? ''}`;
    generations.set(pool, Math.max(generations.get(pool) ?? 0, spec?.pool?.generation ?? 0));
  }
  const taints = new Map<string, DeviceTaint[]>();
  for (const { spec } of slices) {
    const pool = `${spec?.driver ?? ''}/${spec?.pool?.name ?? ''}`;
    if ((spec?.pool?.generation ?? 0) < (generations.get(pool) ?? 0)) continue;
    for (const device of spec?.devices ?? []) {
      const evicting = (device.taints ?? []).filter(({ effect }) => effect === 'NoExecute');
      if (evicting.length > 0) taints.set(`${pool}/${device.name ?? ''}`, evicting);
    }
  }
  return taints;
}

/** Status condition of a rule, which describes the pods that its taint evicts; undefined if unchanged. */
export function ruleCondition(
  rule: DeviceTaintRule,
  pods: readonly Pod[],
  nowMs: number,
): NonNullable<DeviceTaintRule['status']> | undefined {
  const before = rule.status?.conditions?.find(({ type }) => type === 'EvictionInProgress');
  const evicts = rule.spec?.taint?.effect === 'NoExecute';
  const namespaces = new Set(pods.map(({ metadata }) => metadata?.namespace)).size;
  const count = `${pods.length} pod${pods.length === 1 ? ' needs' : 's need'} to be evicted in ${namespaces} namespace${namespaces === 1 ? '' : 's'}.`;
  const status = evicts && pods.length > 0 ? 'True' : 'False';
  const reason = status === 'True' ? 'PodsPendingEviction' : evicts ? 'Completed' : 'NoEffect';
  const message = evicts || pods.length === 0 ? count : `With the effect NoExecute, ${count}`;
  if (before?.status === status && before.message === message) return undefined;
  const lastTransitionTime = transitionTime(before, status, timestamp(nowMs));
  const observedGeneration = rule.metadata?.generation;
  const condition = { type: 'EvictionInProgress', status, reason, message, lastTransitionTime };
  return {
    conditions: [{ ...condition, ...(observedGeneration === undefined ? {} : { observedGeneration }) }],
  };
}

/**
 * Time at which pods that use the claim must be evicted, in milliseconds since the epoch; undefined if they may stay.
 */
export function evictionTimeMs(
  claim: ResourceClaim,
  taints: ReadonlyMap<string, readonly DeviceTaint[]>,
  nowMs: number,
): number | undefined {
  let first: number | undefined;
  for (const result of claim.status?.allocation?.devices?.results ?? []) {
    const key = `${result.driver ?? ''}/${result.pool ?? ''}/${result.device ?? ''}`;
    for (const taint of taints.get(key) ?? []) {
      const at = leaveAtMs(taint, result, nowMs);
      if (at !== undefined) first = Math.min(first ?? at, at);
    }
  }
  return first;
}

function leaveAtMs(taint: DeviceTaint, { tolerations = [] }: AllocationResult, nowMs: number): number | undefined {
  const sinceMs = Date.parse(taint.timeAdded ?? '');
  const from = Number.isNaN(sinceMs) ? nowMs : sinceMs;
  const matching = tolerations.filter((toleration) => toleratesDevice(toleration, taint));
  if (matching.length === 0) return from;
  const limits = matching.map((each) => (each as { tolerationSeconds?: number }).tolerationSeconds);
  if (limits.some((seconds) => seconds === undefined)) return undefined;
  return from + Math.max(0, Math.min(...limits.map(Number))) * 1000;
}

export function toleratesDevice(toleration: DeviceToleration, taint: DeviceTaint): boolean {
  const { key = '', operator = 'Equal', value = '', effect = '' } = toleration;
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  if (operator === 'Exists') return true;
  return key !== '' && value === (taint.value ?? '');
}

/** Pods for which the claim is reserved and that are still running. */
export function podsToEvict(claim: ResourceClaim, pod: (name: string) => Pod | undefined): Pod[] {
  return (claim.status?.reservedFor ?? []).flatMap(({ resource, name = '', uid }) => {
    const holder = resource === 'pods' ? pod(name) : undefined;
    if (holder === undefined || holder.metadata?.uid !== uid) return [];
    return isPodTerminal(holder) || holder.metadata?.deletionTimestamp !== undefined ? [] : [holder];
  });
}
