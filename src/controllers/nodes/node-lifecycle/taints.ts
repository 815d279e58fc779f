/**
 * Taints derived from a node's conditions. Source: upstream's nodelifecycle controller and the page "Taints and
 * Tolerations".
 */

import type { Node, Taint } from '../../../api/generated/core/v1.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { readyCondition } from './health.ts';

export const NOT_READY = 'node.kubernetes.io/not-ready';
export const UNREACHABLE = 'node.kubernetes.io/unreachable';
const UNSCHEDULABLE = 'node.kubernetes.io/unschedulable';

const BY_CONDITION: readonly { readonly type: string; readonly status: string; readonly key: string }[] = [
  { type: 'Ready', status: 'False', key: NOT_READY },
  { type: 'Ready', status: 'Unknown', key: UNREACHABLE },
  { type: 'MemoryPressure', status: 'True', key: 'node.kubernetes.io/memory-pressure' },
  { type: 'DiskPressure', status: 'True', key: 'node.kubernetes.io/disk-pressure' },
  { type: 'PIDPressure', status: 'True', key: 'node.kubernetes.io/pid-pressure' },
  { type: 'NetworkUnavailable', status: 'True', key: 'node.kubernetes.io/network-unavailable' },
];

const MANAGED_NO_SCHEDULE = new Set([...BY_CONDITION.map((each) => each.key), UNSCHEDULABLE]);

export interface TaintInput {
  readonly node: Node;
  /**
   * Whether NoExecute taints, which evict pods, may be added now. If a whole zone stops reporting, the fault is
   * probably in the network of this host, and no pod must be evicted.
   */
  readonly mayEvict: boolean;
  readonly nowMs: number;
}

/** All taints that the node should have; undefined if unchanged. Taints of other components are kept. */
export function planTaints(input: TaintInput): Taint[] | undefined {
  const { node } = input;
  const current = node.spec?.taints ?? [];
  const wanted = new Set<string>();
  for (const each of BY_CONDITION) {
    const condition = node.status?.conditions?.find((one) => one.type === each.type);
    if (condition?.status === each.status) wanted.add(each.key);
  }
  if (node.spec?.unschedulable === true) wanted.add(UNSCHEDULABLE);
  // A node that has not reported yet counts as not ready.
  if (readyCondition(node) === undefined) wanted.add(NOT_READY);
  const taints = current.filter((taint) => isKept(taint, wanted, input.mayEvict));
  for (const key of wanted) {
    if (!taints.some((taint) => taint.key === key && taint.effect === 'NoSchedule')) {
      taints.push({ key, effect: 'NoSchedule', timeAdded: timestamp(input.nowMs) });
    }
  }
  const evicting = [NOT_READY, UNREACHABLE].find((key) => wanted.has(key));
  if (evicting !== undefined && input.mayEvict && readyCondition(node) !== undefined) {
    if (!taints.some((taint) => taint.key === evicting && taint.effect === 'NoExecute')) {
      taints.push({ key: evicting, effect: 'NoExecute', timeAdded: timestamp(input.nowMs) });
    }
  }
  return sameTaints(current, taints) ? undefined : taints;
}

function isKept(taint: Taint, wanted: ReadonlySet<string>, mayEvict: boolean): boolean {
  if (taint.effect === 'NoSchedule') return !MANAGED_NO_SCHEDULE.has(taint.key) || wanted.has(taint.key);
  if (taint.effect === 'NoExecute' && (taint.key === NOT_READY || taint.key === UNREACHABLE)) {
    return mayEvict && wanted.has(taint.key);
  }
  return true;
}

function sameTaints(a: readonly Taint[], b: readonly Taint[]): boolean {
  const text = (taints: readonly Taint[]): string =>
    taints
      .map((taint) => `${taint.key}=${taint.value ?? ''}:${taint.effect}`)
      .sort()
      .join(',');
  return text(a) === text(b);
}
