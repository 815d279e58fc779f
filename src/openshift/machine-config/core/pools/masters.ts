/**
 * Plans whether pods may run on masters, according to spec.mastersSchedulable of the Scheduler object `cluster`.
 * Source: makeMastersSchedulable and makeMasterUnSchedulable in pkg/controller/node of
 * openshift/machine-config-operator.
 */
import type { Node, Taint } from '../../../../api/generated/core/v1.ts';

export const MASTER_LABEL = 'node-role.kubernetes.io/master';
const WORKER_LABEL = 'node-role.kubernetes.io/worker';
const TAINT: Taint = { key: MASTER_LABEL, effect: 'NoSchedule' };

export interface MasterPatch {
  readonly metadata: { readonly labels: Readonly<Record<string, string | null>> };
  readonly spec: { readonly taints: readonly Taint[] };
}

/**
 * Changes to the labels and taints of a node; undefined if the node is correct or not a master. If the master already
 * has the worker label, an administrator's taint is kept.
 */
export function planMaster({ metadata, spec }: Node, schedulable: boolean): MasterPatch | undefined {
  const labels = metadata?.labels ?? {};
  const isWorker = Object.hasOwn(labels, WORKER_LABEL);
  const taints = spec?.taints ?? [];
  const others = taints.filter(({ key, effect }) => key !== TAINT.key || effect !== TAINT.effect);
  const isTainted = others.length < taints.length;
  if (!Object.hasOwn(labels, MASTER_LABEL)) return undefined;
  if (schedulable ? isWorker : !isWorker && isTainted) return undefined;
  return {
    metadata: { labels: { [WORKER_LABEL]: schedulable ? '' : null } },
    spec: { taints: schedulable ? others : [...others, TAINT] },
  };
}
