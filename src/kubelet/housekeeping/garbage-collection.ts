/**
 * Garbage collection of containers, pod directories, cgroups and images. Source: kuberuntime_gc.go,
 * pkg/kubelet/images/image_gc_manager.go, kubelet_volumes.go.
 */
import type { Pod } from '../../api/generated/core/v1.ts';
import { toUid, type Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { ContainerStatus } from '../../runtime/port.ts';
import type { PodTable } from '../pods/pod-table.ts';
import type { PodServices } from '../pods/services.ts';
import { rotatedLogs } from '../server/log-chain.ts';

type CollectionServices = Pick<
  PodServices,
  'cgroups' | 'clock' | 'directories' | 'files' | 'host' | 'log' | 'runtime' | 'settings' | 'view' | 'volumes'
>;

/** Dead containers kept per name, for `logs --previous` and the last state. */
const KEEP_DEAD = 1;

/**
 * Removes all containers of the pods in `ended`, and from other pods all that `logs --previous` and the last state do
 * not need.
 */
export async function collectContainers(
  services: CollectionServices,
  ended: ReadonlySet<Uid> = new Set(),
): Promise<void> {
  let removed = false;
  for (const uid of services.view.uids()) {
    const { containers, sandboxes } = services.view.get(uid);
    const byName = Map.groupBy(containers, (status) => status.name);
    const kept = new Set<string>();
    for (const statuses of byName.values()) {
      const [newest, ...older] = statuses.sort((a, b) => b.attempt - a.attempt || b.createdAtMs - a.createdAtMs);
      if (ended.has(uid)) {
        for (const status of statuses) removed = (await removeContainer(services, status)) || removed;
        continue;
      }
      if (newest !== undefined) kept.add(newest.sandboxId);
      // The newest container is the current state, running or dead. One more is kept as the last state.
      let dead = KEEP_DEAD;
      for (const status of older) {
        if (status.state === 'running') continue;
        if (status.state === 'exited' && dead > 0) {
          dead -= 1;
          kept.add(status.sandboxId);
          continue;
        }
        removed = (await removeContainer(services, status)) || removed;
      }
    }
    const [current] = [...sandboxes].sort((a, b) => b.attempt - a.attempt);
    for (const sandbox of sandboxes) {
      if (sandbox.state === 'ready' || kept.has(sandbox.id) || (sandbox === current && !ended.has(uid))) continue;
      await services.runtime
        .stopPodSandbox(sandbox.id)
        .then(() => services.runtime.removePodSandbox(sandbox.id))
        .catch((error: unknown) =>
          services.log.v(2, 'sandbox not removed', { sandbox: sandbox.id, error: messageOf(error) }),
        );
      removed = true;
    }
  }
  if (removed) await services.view.refresh();
  await services.files.pods.removeDanglingLinks(services.settings.paths.containerLogs);
}

async function removeContainer(services: CollectionServices, status: ContainerStatus): Promise<boolean> {
  try {
    await services.runtime.removeContainer(status.id);
    if (status.logPath !== '') {
      const { logs } = services.files;
      for (const old of await rotatedLogs(logs, status.logPath).catch(() => [])) await logs.remove(old);
      await logs.remove(status.logPath);
    }
    return true;
  } catch (error) {
    services.log.v(2, 'container not removed', { container: status.id, error: messageOf(error) });
    return false;
  }
}

/**
 * Removes directories and cgroups of orphaned pods after every source has synced. The pod directory is removed last:
 * its name shows that the pod's cgroups belong to this instance, and another instance may use the same cgroup tree.
 */
export async function collectOrphans(
  services: CollectionServices,
  pods: Pick<PodTable, 'workers' | 'apiHasSynced'>,
): Promise<void> {
  if (!pods.apiHasSynced) return;
  const known = new Set([...pods.workers().map((worker) => worker.uid), ...services.view.uids()]);
  const uids = (await services.files.pods.names(services.directories.pods)).map(toUid);
  const orphans = uids.filter((uid) => !known.has(uid));
  if (orphans.length === 0) return;
  const cgroups = await services.cgroups.list();
  for (const uid of orphans) {
    try {
      await services.volumes.tearDown(uid);
      for (const { path } of cgroups.filter((each) => each.uid === uid)) await services.cgroups.removePath(path);
      await services.directories.removePod(uid);
    } catch (error) {
      services.log.warn('orphaned pod not removed', { uid, error: messageOf(error) });
    }
  }
}

/**
 * Removes unused images, least recently used first, when their disk is too full. Images of this node's pods are kept
 * even without a container, because a host that cannot reach a registry could not pull them again.
 */
export class ImageCollector {
  private readonly services: CollectionServices;
  private readonly pods: () => readonly Pod[] | undefined;
  private readonly lastUsedMs = new Map<string, number>();

  /** `pods` returns undefined while the pods of this node are unknown. No image is removed then. */
  constructor(services: CollectionServices, pods: () => readonly Pod[] | undefined) {
    this.services = services;
    this.pods = pods;
  }

  collect(): Promise<void> {
    return this.remove('excess');
  }

  /** Removes every image that is unused and not new, regardless of free space. */
  collectAll(): Promise<void> {
    return this.remove('all');
  }

  private async remove(amount: 'all' | 'excess'): Promise<void> {
    const { services } = this;
    const { settings, clock, runtime, log } = services;
    const nowMs = clock.monotonicMs();
    const used = new Set<string>();
    for (const uid of services.view.uids()) {
      for (const container of services.view.get(uid).containers) used.add(container.imageId);
    }
    const pods = this.pods();
    if (pods === undefined) return;
    const names = new Set(pods.flatMap(({ spec }) => imagesOf(spec)));
    for (const name of names) {
      const image = await runtime.images.status(name).catch(() => undefined);
      if (image !== undefined) used.add(image.id);
    }
    const images = await runtime.images.list();
    for (const image of images) {
      if (used.has(image.id) || !this.lastUsedMs.has(image.id)) this.lastUsedMs.set(image.id, nowMs);
    }
    for (const id of this.lastUsedMs.keys()) {
      if (!images.some((image) => image.id === id)) this.lastUsedMs.delete(id);
    }
    const disk = await services.host.fileSystem(settings.paths.images);
    if (disk.capacityBytes === 0) return;
    const usedBytes = disk.capacityBytes - disk.availableBytes;
    if (amount === 'excess' && usedBytes * 100 < disk.capacityBytes * settings.imageGcHighThresholdPercent) return;
    let excess =
      amount === 'all'
        ? Number.POSITIVE_INFINITY
        : usedBytes - (disk.capacityBytes * settings.imageGcLowThresholdPercent) / 100;
    const candidates = images
      .filter(
        (image) =>
          !used.has(image.id) &&
          image.pinned !== true &&
          nowMs - (this.lastUsedMs.get(image.id) ?? nowMs) >= settings.imageMinimumGcAgeMs,
      )
      .sort((a, b) => (this.lastUsedMs.get(a.id) ?? 0) - (this.lastUsedMs.get(b.id) ?? 0));
    for (const image of candidates) {
      if (excess <= 0) break;
      try {
        await runtime.images.remove(image.id);
        excess -= image.sizeBytes;
        log.info('image removed to free disk space', {
          image: image.repoTags[0] ?? image.id,
          bytes: image.sizeBytes,
        });
      } catch (error) {
        log.warn('image not removed', { image: image.id, error: messageOf(error) });
      }
    }
  }
}

const imagesOf = (spec: Pod['spec']): string[] =>
  [
    ...[...(spec?.initContainers ?? []), ...(spec?.containers ?? []), ...(spec?.ephemeralContainers ?? [])].map(
      ({ image = '' }) => image,
    ),
    ...(spec?.volumes ?? []).map(({ image }) => image?.reference ?? ''),
  ].filter((image) => image !== '');
