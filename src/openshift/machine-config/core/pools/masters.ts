/**
 * Whether pods may run on masters, according to spec.mastersSchedulable of the Scheduler `cluster`. Source:
 * makeMastersSchedulable and makeMasterUnSchedulable in pkg/controller/node of openshift/machine-config-operator.
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
 * Missing labels and taints of a master; undefined if it is complete or no master. A master that already is a worker
 * keeps a taint set by an administrator.
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
