import type { Pod } from '../../api/generated/core/v1.ts';
import { toUid } from '../../base/brand.ts';
import type { PodServices } from './services.ts';

export type PodReleaseServices = Pick<
  PodServices,
  'cgroups' | 'devices' | 'directories' | 'prober' | 'runtime' | 'view' | 'volumes'
>;

/** Data of an ended pod that stays on disk. */
export type Kept =
  /** All data, because the host only stops and will restart the pod with its volumes. */
  | 'volumes'
  /** Container records and logs, because the pod object may still exist. */
  | 'records'
  /** No data, because the pod was evicted for its resource usage. */
  | 'nothing';

/** `isStopped`: the host stops, and the pod starts again with the host unless it is being deleted. */
export function keptAfter({ metadata }: Pod, isStopped: boolean, isEvicted: boolean): Kept {
  if (isStopped && metadata?.deletionTimestamp === undefined) return 'volumes';
  return isEvicted ? 'nothing' : 'records';
}

/**
 * Releases the resources of an ended pod. Container records stay for `logs --previous` until the pod object is deleted.
 */
export async function releasePod(services: PodReleaseServices, pod: Pod, kept: () => Kept): Promise<void> {
  const uid = toUid(pod.metadata?.uid);
  services.prober.remove(uid);
  await services.volumes.tearDown(uid, kept() === 'volumes');
  await services.cgroups.removePod(uid);
  await services.devices?.release(uid);
  await freeDisk(services, pod, kept());
}

async function freeDisk({ directories, runtime, view }: PodReleaseServices, pod: Pod, kept: Kept): Promise<void> {
  if (kept === 'volumes') return;
  const uid = toUid(pod.metadata?.uid);
  await directories.removeVolumes(uid);
  if (kept === 'records') return;
  const { containers, sandboxes } = view.get(uid);
  for (const { id } of containers) await runtime.removeContainer(id);
  for (const { id } of sandboxes) await runtime.removePodSandbox(id);
  await directories.removePod(uid);
  await directories.removeLogs(pod);
  await view.refresh();
}
