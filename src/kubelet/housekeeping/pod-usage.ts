/** Disk usage of pods on the node's own disk. Source: pkg/kubelet/eviction/helpers.go podDiskUsage; KEP-361. */
import { join } from 'node:path';
import type { Pod } from '../../api/generated/core/v1.ts';
import type { Uid } from '../../base/brand.ts';
import type { UsageOptions } from '../../runtime/directory-removal/port.ts';
import type { PodWorker } from '../pods/pod-worker.ts';
import type { PodServices } from '../pods/services.ts';

type PodUsageServices = Pick<PodServices, 'directories' | 'runtime' | 'trees' | 'view'>;

export interface PodDiskUsage {
  /** emptyDir volumes on disk or in huge pages. */
  readonly volumes: readonly { readonly name: string; readonly onDisk: boolean; readonly used: number }[];
  /** Writable layer of the newest attempt, plus logs and termination messages of all attempts. */
  readonly containers: readonly { readonly name: string; readonly used: number }[];
  /** `/etc/hosts`, which all containers may write. */
  readonly shared: number;
  /** Total usage of the disk, including writable layers of earlier attempts. */
  readonly total: number;
}

/** Disk usage by pod UID. Throws CodedError 'timeout' or 'usage'. */
export async function diskUsage(
  services: PodUsageServices,
  workers: readonly PodWorker[],
  options: UsageOptions,
): Promise<ReadonlyMap<Uid, PodDiskUsage>> {
  const places = workers.map((worker) => placesOf(services, worker));
  const paths = places.flatMap(({ shared, volumes, files }) => [
    shared,
    ...volumes.map(({ path }) => path),
    ...[...files.values()].flat(),
  ]);
  const ids = places.flatMap(({ layers }) => [...layers.values()].flat());
  const [trees, layers] = await Promise.all([
    services.trees.usage(paths, options),
    services.runtime.writableLayers(ids, options),
  ]);
  return new Map(
    places.map((place) => {
      const volumes = place.volumes.map(({ path, ...volume }) => ({ ...volume, used: trees.get(path) ?? 0 }));
      const shared = trees.get(place.shared) ?? 0;
      let earlier = 0;
      const containers = [...place.files].map(([name, own]) => {
        const [newest = '', ...older] = place.layers.get(name) ?? [];
        for (const id of older) earlier += layers.get(id) ?? 0;
        return { name, used: own.reduce((sum, path) => sum + (trees.get(path) ?? 0), layers.get(newest) ?? 0) };
      });
      const onDisk = volumes.filter((volume) => volume.onDisk);
      const total = [...onDisk, ...containers].reduce((sum, { used }) => sum + used, shared + earlier);
      return [place.uid, { volumes, containers, shared, total }];
    }),
  );
}

interface Places {
  readonly uid: Uid;
  readonly volumes: readonly { readonly name: string; readonly onDisk: boolean; readonly path: string }[];
  readonly shared: string;
  readonly files: ReadonlyMap<string, readonly string[]>;
  /** Container IDs by name, newest attempt first. */
  readonly layers: ReadonlyMap<string, readonly string[]>;
}

function placesOf(services: PodUsageServices, { uid, pod }: PodWorker): Places {
  const { directories } = services;
  const statuses = services.view.get(uid).containers;
  const names = containerNames(pod);
  return {
    uid,
    volumes: (pod.spec?.volumes ?? []).flatMap(({ name, emptyDir }) => {
      if (emptyDir === undefined || emptyDir.medium === 'Memory') return [];
      const onDisk = emptyDir.medium === undefined || emptyDir.medium === '';
      return [{ name, onDisk, path: directories.volume(uid, 'empty-dir', name) }];
    }),
    shared: directories.etcHosts(uid),
    files: new Map(
      names.map((name) => [name, [join(directories.logs(pod), name), directories.terminationMessages(uid, name)]]),
    ),
    layers: new Map(
      names.map((name) => [
        name,
        statuses
          .filter((status) => status.name === name)
          .sort((left, right) => right.attempt - left.attempt || right.createdAtMs - left.createdAtMs)
          .map(({ id }) => id),
      ]),
    ),
  };
}

const containerNames = ({ spec }: Pod): string[] =>
  [...(spec?.initContainers ?? []), ...(spec?.containers ?? []), ...(spec?.ephemeralContainers ?? [])].map(
    ({ name }) => name,
  );
