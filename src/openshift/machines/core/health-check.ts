/**
 * Plans machine health checks: finds unhealthy machines, and decides whether they may be deleted. Source:
 * openshift/machine-api-operator pkg/controller/machinehealthcheck.
 */

import type { Node } from '../../../api/generated/core/v1.ts';
import { labelSelectorOf, matchesLabels } from '../../../base/selector.ts';
import { parseDuration } from '../../../base/time/duration.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import { resolveIntOrPercent } from '../../../controllers/framework/core/int-or-percent.ts';
import { controllerOf } from '../../../controllers/framework/core/ownership.ts';
import type { PlanContext } from '../../../controllers/framework/core/plan-context.ts';
import {
  type Machine,
  type MachineHealthCheck,
  type MachineHealthCheckStatus,
  ROLE_LABEL,
} from '../kinds/machine-types.ts';
import { isFalse, isTrue, withConditions } from './conditions.ts';

export interface HealthSnapshot {
  readonly check: MachineHealthCheck;
  /** Machines in the namespace of the check. */
  readonly machines: readonly Machine[];
  node(name: string): Node | undefined;
}

export interface HealthPlan {
  /** Machines to delete. */
  readonly remediate: readonly { readonly machine: Machine; readonly why: string }[];
  /** Unhealthy machines that must not be deleted, with the reason. */
  readonly skipped: readonly { readonly machine: Machine; readonly why: string }[];
  readonly status: MachineHealthCheckStatus;
  /** Milliseconds until a machine may become unhealthy without an event; undefined if there is no such time. */
  readonly nextMs: number | undefined;
}

const DEFAULT_STARTUP = '10m';

interface MachineHealth {
  readonly machine: Machine;
  /** Reason to remediate the machine. Undefined if it is healthy, or has not been unhealthy for long enough. */
  readonly why: string | undefined;
  /** Whether the Node has no unhealthy condition now. */
  readonly healthy: boolean;
  readonly nextMs: number | undefined;
}

export function planHealthCheck({ check, machines, node }: HealthSnapshot, context: PlanContext): HealthPlan {
  const selector = labelSelectorOf(check.spec?.selector);
  const assessed = machines
    .filter(({ metadata }) => matchesLabels(selector, metadata?.labels))
    .map((machine) => assess(machine, check, node, context.nowMs));
  const healthy = assessed.filter((each) => each.healthy).length;
  const most = resolveIntOrPercent(check.spec?.maxUnhealthy, assessed.length, 'down', '100%');
  const unhealthy = assessed.length - healthy;
  const allowed = unhealthy <= most;
  const condition = allowed
    ? isTrue('RemediationAllowed')
    : isFalse(
        'RemediationAllowed',
        'TooManyUnhealthy',
        `Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy (total: ${assessed.length}, unhealthy: ${unhealthy}, maxUnhealthy: ${String(check.spec?.maxUnhealthy ?? '100%')})`,
      );
  const status: MachineHealthCheckStatus = {
    expectedMachines: assessed.length,
    currentHealthy: healthy,
    remediationsAllowed: Math.max(0, most - unhealthy),
    conditions: withConditions(check.status?.conditions, [condition], context.nowMs),
  };
  const next = assessed.flatMap(({ nextMs }) => (nextMs === undefined ? [] : [nextMs]));
  const nextMs = next.length === 0 ? undefined : Math.min(...next);
  const remediate: { machine: Machine; why: string }[] = [];
  const skipped: { machine: Machine; why: string }[] = [];
  for (const { machine, why } of assessed) {
    if (why === undefined || machine.metadata?.deletionTimestamp !== undefined) continue;
    const refusal = allowed ? refusalOf(machine) : 'RemediationRestricted';
    if (refusal === undefined) remediate.push({ machine, why });
    else skipped.push({ machine, why: refusal });
  }
  return { remediate, skipped, status, nextMs };
}

/**
 * Reason why the machine must not be deleted, if any: only a MachineSet would replace it, and masters require an
 * administrator.
 */
function refusalOf(machine: Machine): string | undefined {
  if (controllerOf(machine)?.kind !== 'MachineSet') return 'machine has no machineset owner; skipping remediation';
  const isMaster =
    machine.metadata?.labels?.[ROLE_LABEL] === 'master' ||
    machine.spec?.providerSpec?.value?.roles?.includes('master') === true;
  return isMaster ? 'machine is a control plane machine; skipping remediation' : undefined;
}

function assess(
  machine: Machine,
  check: MachineHealthCheck,
  node: HealthSnapshot['node'],
  nowMs: number,
): MachineHealth {
  const unhealthy = (why: string): MachineHealth => ({ machine, why, healthy: false, nextMs: undefined });
  const { status, metadata } = machine;
  if (status?.phase === 'Failed') return unhealthy(`machine has failed: ${status.errorMessage ?? ''}`);
  const name = status?.nodeRef?.name;
  if (name === undefined) {
    const text = check.spec?.nodeStartupTimeout ?? DEFAULT_STARTUP;
    const startupMs = text === '0' ? 0 : (parseDuration(text) ?? 0);
    const waits: MachineHealth = { machine, why: undefined, healthy: false, nextMs: undefined };
    if (startupMs === 0) return waits;
    const endMs = timeMs(status?.lastUpdated ?? metadata?.creationTimestamp) + startupMs;
    return endMs <= nowMs ? unhealthy(`no node after ${text}`) : { ...waits, nextMs: endMs };
  }
  const found = node(name);
  if (found === undefined) return unhealthy(`node ${name} is deleted`);
  let nextMs: number | undefined;
  let matched = false;
  for (const { type, status: wanted, timeout } of check.spec?.unhealthyConditions ?? []) {
    const condition = found.status?.conditions?.find((each) => each.type === type);
    if (condition?.status !== wanted) continue;
    matched = true;
    const ms = timeout === '0' ? 0 : (parseDuration(timeout ?? '') ?? 0);
    const endMs = timeMs(condition?.lastTransitionTime) + ms;
    if (endMs <= nowMs) return unhealthy(`condition ${type} of node ${name} has been ${wanted} for ${timeout}`);
    nextMs = Math.min(nextMs ?? endMs, endMs);
  }
  return { machine, why: undefined, healthy: !matched, nextMs };
}
