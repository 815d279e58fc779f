import type { PodCondition, PodStatus } from '../../api/generated/core/v1.ts';
import { canonicalJson } from '../../base/json/canonical-json.ts';
import { isKubeletCondition, RESIZE_CONDITIONS } from '../core/pod-plan/status.ts';

/**
 * Fields that the kubelet may remove. Other components own the remaining ones, such as nominatedNodeName and resize.
 */
const REMOVABLE = [
  'reason',
  'message',
  'podIP',
  'podIPs',
  'initContainerStatuses',
  'ephemeralContainerStatuses',
] as const satisfies readonly (keyof PodStatus)[];

/**
 * Builds the strategic merge patch from `from` to `to`. Returns undefined when they are equal. Conditions merge by
 * type, so conditions of other components are kept. Addresses merge by IP, so removed ones are deleted explicitly.
 * Container statuses replace the list.
 */
export function statusPatch(from: PodStatus, to: PodStatus): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(to)) {
    const before = from[field as keyof PodStatus];
    if (canonicalJson(before) === canonicalJson(value)) continue;
    // The QoS class is immutable. An orphaned pod, whose spec is unknown, would report BestEffort, and the API would
    // refuse the whole status.
    if (field === 'qosClass' && before !== undefined) continue;
    if (field === 'conditions') {
      const changed = changedConditions(from.conditions ?? [], value as PodCondition[]);
      if (changed.length > 0) patch['conditions'] = changed;
    } else if (field === 'podIPs' || field === 'hostIPs') {
      patch[field] = mergedByIp((before ?? []) as { ip?: string }[], value as { ip?: string }[]);
    } else {
      patch[field] = value;
    }
  }
  for (const field of REMOVABLE) {
    if (from[field] !== undefined && to[field] === undefined) patch[field] = null;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

const MAX_MESSAGE = 1024;

/**
 * Patch for a status that the API rejects: only the fields that clients and controllers wait for. Undefined when the
 * API has them already.
 */
export function essentialPatch(from: PodStatus, to: PodStatus, refusal: Error): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {};
  const message = to.message ?? `status: ${refusal.message}`.slice(0, MAX_MESSAGE);
  for (const [field, value] of Object.entries({ phase: to.phase, reason: to.reason, message })) {
    if (value !== undefined && from[field as keyof PodStatus] !== value) patch[field] = value;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function changedConditions(from: readonly PodCondition[], to: readonly PodCondition[]): object[] {
  const changed: object[] = [];
  for (const condition of to) {
    if (!isKubeletCondition(condition.type)) continue;
    const before = from.find((each) => each.type === condition.type);
    if (before !== undefined && sameCondition(before, condition)) continue;
    changed.push({
      ...condition,
      ...(before?.reason !== undefined && condition.reason === undefined ? { reason: null } : {}),
      ...(before?.message !== undefined && condition.message === undefined ? { message: null } : {}),
    });
  }
  for (const type of RESIZE_CONDITIONS) {
    const has = (list: readonly PodCondition[]): boolean => list.some((each) => each.type === type);
    if (has(from) && !has(to)) changed.push({ type, $patch: 'delete' });
  }
  return changed;
}

/** Fields missing in `to` are ignored: the API server keeps a generation and adds `lastProbeTime: null`. */
function sameCondition(from: PodCondition, to: PodCondition): boolean {
  return (
    (to.observedGeneration ?? from.observedGeneration) === from.observedGeneration &&
    from.status === to.status &&
    (from.reason ?? '') === (to.reason ?? '') &&
    (from.message ?? '') === (to.message ?? '') &&
    from.lastTransitionTime === to.lastTransitionTime
  );
}

function mergedByIp(from: readonly { ip?: string }[], to: readonly { ip?: string }[]): object[] {
  const gone = from.filter((each) => !to.some((kept) => kept.ip === each.ip));
  return [...to, ...gone.map((each) => ({ ip: each.ip, $patch: 'delete' }))];
}
