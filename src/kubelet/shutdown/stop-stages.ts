/** Stops the pods of a host in order: API pods first, then static pods, on which API pods may depend. */
import type { Pod } from '../../api/generated/core/v1.ts';
import type { PodTable } from '../pods/pod-table.ts';

/** Grace period for pods that are stopped after a second signal. The control plane needs far less. */
const HURRIED_GRACE_SECONDS = 2;

/** Annotation of a static pod. Pods with higher values stop later when the host stops. */
const STOP_STAGE = 'hyperedge.dev/stop-stage';

/** True for pods of the control plane, which report the statuses of all other pods. */
export const hasStopStage = (pod: Pod): boolean => pod.metadata?.annotations?.[STOP_STAGE] !== undefined;

function stopStage(pod: Pod): number {
  const stage = Number(pod.metadata?.annotations?.[STOP_STAGE] ?? 1);
  return Number.isInteger(stage) && stage >= 0 ? stage : 1;
}

/** Resolves when all pods have ended. Kills the remaining ones when `hurry` is aborted. */
export async function stopInStages(
  pods: Pick<PodTable, 'allStaticPods' | 'workers'>,
  hurry: AbortSignal | undefined,
): Promise<void> {
  const stages = new Map(pods.allStaticPods().map((pod) => [pod.metadata?.uid, stopStage(pod)]));
  const staged = Map.groupBy(pods.workers(), (worker) => stages.get(worker.uid) ?? 0);
  for (const [, group] of [...staged].sort(([left], [right]) => left - right)) {
    const end = (graceSeconds: number | undefined): void => {
      for (const worker of group)
        worker.stopWithHost(Number(graceSeconds ?? worker.pod.spec?.terminationGracePeriodSeconds ?? 30));
    };
    const kill = (): void => end(0);
    end(hurry?.aborted === true ? HURRIED_GRACE_SECONDS : undefined);
    hurry?.addEventListener('abort', kill);
    await Promise.all(group.map((worker) => worker.ended()));
    hurry?.removeEventListener('abort', kill);
  }
}
