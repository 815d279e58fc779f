/**
 * Computes the counts and conditions of a pool. Source: calculateStatus in pkg/controller/node of
 * openshift/machine-config-operator.
 */

import type { Node } from '../../../../api/generated/core/v1.ts';
import { semanticEqual } from '../../../../api/meta/equality.ts';
import { timestamp } from '../../../../base/time/timestamps.ts';
import type { MachineConfigPool, MachineConfigPoolStatus, StatusCondition } from '../../kinds/machine-config-types.ts';
import { isDegraded, isDoneAt, isReady, isUnavailable, reasonOf } from './node-state.ts';
import { nameOf } from './pools.ts';

export function poolStatus(pool: MachineConfigPool, nodes: readonly Node[], nowMs: number): MachineConfigPoolStatus {
  const target = pool.spec?.configuration?.name ?? '';
  const updated = nodes.filter((node) => isDoneAt(node, target));
  const ready = updated.filter(isReady);
  const unavailable = nodes.filter(isUnavailable);
  const degraded = nodes.filter(isDegraded);
  const all = updated.length === nodes.length && ready.length === nodes.length && unavailable.length === 0;
  let conditions: readonly StatusCondition[] = pool.status?.conditions ?? [];
  const set = (type: string, status: 'True' | 'False', message = '', reason = ''): void => {
    conditions = withCondition(conditions, { type, status, reason, message }, nowMs);
  };
  set('Updated', all ? 'True' : 'False', all ? `All nodes are updated with ${target}` : '');
  if (all) set('Updating', 'False');
  else if (pool.spec?.paused === true) set('Updating', 'False', `Pool is paused; will not update to ${target}`);
  else set('Updating', 'True', `All nodes are updating to ${target}`);
  const reasons = degraded.flatMap((node) =>
    reasonOf(node) === '' ? [] : [`Node ${nameOf(node)} is reporting: ${JSON.stringify(reasonOf(node))}`],
  );
  const nodeReason = degraded.length === 0 ? '' : `${degraded.length} nodes are reporting degraded status on sync`;
  set('NodeDegraded', degraded.length > 0 ? 'True' : 'False', reasons.join(', '), nodeReason);
  set('Degraded', degraded.length > 0 || isConditionTrue(pool, 'RenderDegraded') ? 'True' : 'False');
  return {
    observedGeneration: pool.metadata?.generation ?? 0,
    machineCount: nodes.length,
    updatedMachineCount: updated.length,
    readyMachineCount: ready.length,
    unavailableMachineCount: unavailable.length,
    degradedMachineCount: degraded.length,
    configuration: (all && target !== '' ? pool.spec?.configuration : pool.status?.configuration) ?? {},
    conditions: [...conditions],
  };
}

export const isConditionTrue = ({ status }: MachineConfigPool, type: string): boolean =>
  (status?.conditions ?? []).some((each) => each.type === type && each.status === 'True');

/** Returns the conditions with `wanted` added or replaced. The transition time changes only if the status changes. */
export function withCondition(
  conditions: readonly StatusCondition[],
  wanted: Omit<StatusCondition, 'lastTransitionTime'>,
  nowMs: number,
): readonly StatusCondition[] {
  const current = conditions.find(({ type }) => type === wanted.type);
  const { lastTransitionTime = null, ...rest } = current ?? {};
  if (current !== undefined && semanticEqual(rest, wanted)) return conditions;
  const since = current?.status === wanted.status ? lastTransitionTime : timestamp(nowMs);
  return [...conditions.filter(({ type }) => type !== wanted.type), { ...wanted, lastTransitionTime: since }];
}
