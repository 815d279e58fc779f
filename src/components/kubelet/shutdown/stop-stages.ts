/** Stops the pods of a host in order: pods of the API first, then static pods, which those may depend on. */
import type { Pod } from 'kubernetes-types/core/v1';
import type { PodManager } from '../pods/pod-manager.ts';

/** For pods whose turn to stop comes after a second signal: the control plane needs far less. */
const HURRIED_GRACE_SECONDS = 2;

/** On a static pod: the higher, the later it is stopped together with the host. */
const STOP_STAGE = 'hyperedge.dev/stop-stage';

/** True for the pods of the control plane, which report what happens to all others. */
export const hasStopStage = (pod: Pod): boolean => pod.metadata?.annotations?.[STOP_STAGE] !== undefined;

function stopStage(pod: Pod): number {
  const stage = Number(pod.metadata?.annotations?.[STOP_STAGE] ?? 1);
  return Number.isInteger(stage) && stage >= 0 ? stage : 1;
}

/** Resolves when all have ended. Once `hurry` is aborted they are killed. */
export async function stopInStages(manager: PodManager, hurry: AbortSignal | undefined): Promise<void> {
  const stages = new Map(manager.allStaticPods().map((pod) => [pod.metadata?.uid, stopStage(pod)]));
  const staged = Map.groupBy(manager.workers(), (worker) => stages.get(worker.uid) ?? 0);
  for (const [, group] of [...staged].sort(([left], [right]) => left - right)) {
    const end = (graceSeconds: number | undefined): void => {
      for (const worker of group)
        worker.terminate(Number(graceSeconds ?? worker.pod.spec?.terminationGracePeriodSeconds ?? 30));
    };
    const kill = (): void => end(0);
    end(hurry?.aborted === true ? HURRIED_GRACE_SECONDS : undefined);
    hurry?.addEventListener('abort', kill);
    await Promise.all(group.map((worker) => worker.ended()));
    hurry?.removeEventListener('abort', kill);
  }
}
