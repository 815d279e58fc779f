/**
 * Plans a MachineSet: the machines to adopt, create and delete, and the status. Source: openshift/machine-api-operator
 * pkg/controller/machineset with its delete policies.
 */

import type { Node } from '../../../api/generated/core/v1.ts';
import { labelSelectorOf, matchesLabels } from '../../../base/selector.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import { claimObjects } from '../../../controllers/framework/core/ownership.ts';
import type { PlanContext } from '../../../controllers/framework/core/plan-context.ts';
import { DELETE_ANNOTATION, type Machine, type MachineSet, type MachineSetStatus } from '../kinds/machine-types.ts';

export interface MachineSetSnapshot {
  readonly set: MachineSet;
  /** Machines in the namespace of the set. */
  readonly machines: readonly Machine[];
  node(name: string): Node | undefined;
}

export interface MachineSetPlan {
  readonly adopt: readonly Machine[];
  readonly release: readonly Machine[];
  readonly create: number;
  readonly delete: readonly Machine[];
  readonly status: MachineSetStatus;
  /** Milliseconds until a machine becomes available without an event; undefined if there is no such time. */
  readonly nextMs: number | undefined;
}

/** Maximum number of machines that one reconciliation creates. Every machine claims a host, and hosts are few. */
const MOST_AT_ONCE = 32;

export function planMachineSet({ set, machines, node }: MachineSetSnapshot, context: PlanContext): MachineSetPlan {
  const selector = labelSelectorOf(set.spec?.selector);
  const { claimed, adopt, release } = claimObjects(set, machines, (each) =>
    matchesLabels(selector, each.metadata?.labels),
  );
  const { status, nextMs } = countMachines(set, claimed, node, context.nowMs);
  const nothing = { adopt: [], release: [], create: 0, delete: [], status, nextMs };
  if (set.metadata?.deletionTimestamp !== undefined) return nothing;
  const live = claimed.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
  const missing = (set.spec?.replicas ?? 1) - live.length;
  // A machine that is being deleted keeps its host until the host is wiped, so its replacement claims another host.
  const surplus =
    missing < 0 ? inOrderOfDeletion(live, set.spec?.deletePolicy ?? 'Random', context).slice(0, -missing) : [];
  return {
    adopt,
    release,
    status,
    nextMs,
    create: Math.max(0, Math.min(missing, MOST_AT_ONCE)),
    delete: surplus,
  };
}

/**
 * Sorts machines by deletion order: first annotated machines, then failed ones, then machines without a Node, and the
 * others as the policy specifies.
 */
export function inOrderOfDeletion(
  machines: readonly Machine[],
  policy: string,
  { random }: Pick<PlanContext, 'random'>,
): Machine[] {
  const createdMs = ({ metadata }: Machine): number => timeMs(metadata?.creationTimestamp);
  const rank = ({ metadata, status }: Machine): number => {
    if ((metadata?.annotations?.[DELETE_ANNOTATION] ?? '') !== '') return 0;
    if (status?.errorReason !== undefined || status?.errorMessage !== undefined || status?.phase === 'Failed') return 1;
    return status?.nodeRef === undefined ? 2 : 3;
  };
  const weighed = machines.map((machine) => {
    const age = createdMs(machine);
    const weight = policy === 'Oldest' ? age : policy === 'Newest' ? -age : random();
    return { machine, rank: rank(machine), weight, name: machine.metadata?.name ?? '' };
  });
  weighed.sort(
    (left, right) => left.rank - right.rank || left.weight - right.weight || (left.name < right.name ? -1 : 1),
  );
  return weighed.map(({ machine }) => machine);
}

function countMachines(
  { metadata, spec, status: before }: MachineSet,
  machines: readonly Machine[],
  node: MachineSetSnapshot['node'],
  nowMs: number,
): { readonly status: MachineSetStatus; readonly nextMs: number | undefined } {
  const labels = Object.entries(spec?.template?.metadata?.labels ?? {});
  const minReadyMs = (spec?.minReadySeconds ?? 0) * 1000;
  let ready = 0;
  let available = 0;
  let nextMs: number | undefined;
  for (const { status } of machines) {
    const name = status?.nodeRef?.name;
    const found = name === undefined ? undefined : node(name)?.status?.conditions?.find(({ type }) => type === 'Ready');
    if (found?.status !== 'True') continue;
    ready += 1;
    const fromMs = timeMs(found.lastTransitionTime) + minReadyMs;
    if (minReadyMs === 0 || fromMs <= nowMs) available += 1;
    else nextMs = Math.min(nextMs ?? fromMs, fromMs);
  }
  const labelled = machines.filter((each) => labels.every(([key, value]) => each.metadata?.labels?.[key] === value));
  const { errorReason, errorMessage } = before ?? {};
  return {
    nextMs,
    status: {
      replicas: machines.length,
      fullyLabeledReplicas: labelled.length,
      readyReplicas: ready,
      availableReplicas: available,
      observedGeneration: metadata?.generation ?? 1,
      ...(errorReason === undefined ? {} : { errorReason }),
      ...(errorMessage === undefined ? {} : { errorMessage }),
    },
  };
}
