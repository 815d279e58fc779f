import type { Pod } from '../../api/generated/core/v1.ts';
import { toUid, type Uid } from '../../base/brand.ts';
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
 * While `hostStops`, volumes that cannot be released, for example because their driver has ended, are kept for the next
 * start, so that they do not delay the stop of the host.
 */
export async function releasePod(
  services: PodReleaseServices,
  pod: Pod,
  kept: () => Kept,
  hostStops: () => boolean,
): Promise<void> {
  const uid = toUid(pod.metadata?.uid);
  services.prober.remove(uid);
  const areVolumesKept = await tearDownVolumes(services, uid, kept() === 'volumes', hostStops);
  await services.cgroups.removePod(uid);
  await services.devices?.release(uid);
  await freeDisk(services, pod, areVolumesKept ? 'volumes' : kept());
}

/** Returns whether the volumes are kept for the next start. */
async function tearDownVolumes(
  { volumes }: PodReleaseServices,
  uid: Uid,
  areKept: boolean,
  hostStops: () => boolean,
): Promise<boolean> {
  try {
    await volumes.tearDown(uid, areKept);
    return areKept;
  } catch (error) {
    if (areKept || !hostStops()) throw error;
    await volumes.tearDown(uid, true);
    return true;
  }
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
