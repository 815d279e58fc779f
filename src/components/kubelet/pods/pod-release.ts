import type { Pod } from 'kubernetes-types/core/v1';
import type { PodServices } from './services.ts';

/** How much of an ended pod stays on the disk. */
export type Kept =
  /** All: the host only stops, and the pod is started again with its volumes. */
  | 'volumes'
  /** Its containers' records and logs: the pod object may stay. */
  | 'records'
  /** Nothing: the pod was evicted for what it uses of the node. */
  | 'nothing';

/** Releases what an ended pod held. Container records stay for `logs --previous` until the pod object is gone. */
export async function releasePod(services: PodServices, pod: Pod, kept: () => Kept): Promise<void> {
  const uid = pod.metadata?.uid ?? '';
  services.prober.remove(uid);
  await services.volumes.tearDown(uid, kept() === 'volumes');
  await services.cgroups.removePod(uid);
  await services.devices?.release(uid);
  await freeDisk(services, pod, kept());
}

async function freeDisk({ directories, runtime, view }: PodServices, pod: Pod, kept: Kept): Promise<void> {
  if (kept === 'volumes') return;
  const uid = pod.metadata?.uid ?? '';
  await directories.removeVolumes(uid);
  if (kept === 'records') return;
  const { containers, sandboxes } = view.get(uid);
  for (const { id } of containers) await runtime.removeContainer(id);
  for (const { id } of sandboxes) await runtime.removePodSandbox(id);
  await directories.removePod(uid);
  await directories.removeLogs(pod);
  await view.refresh();
}
