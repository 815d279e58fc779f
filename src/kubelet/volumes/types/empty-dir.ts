/** Empty directories that live as long as their pod, on disk or in memory. Source: pkg/volume/emptydir. */
import type { Pod, Volume } from '../../../api/generated/core/v1.ts';
import { toUid } from '../../../base/brand.ts';
import { parseBytes } from '../../../base/quantity.ts';
import { podAmount } from '../../core/cgroups/resources.ts';
import { makeTmpfs } from './tmpfs.ts';
import type { DirectType, DirectVolumeHost, DirectVolumes } from './type.ts';

export const emptyDir: DirectType = {
  way: 'direct',
  source: 'emptyDir',
  create: (host) => new EmptyDirVolumes(host),
};

type Host = Pick<DirectVolumeHost, 'directories' | 'files' | 'mounts'>;

class EmptyDirVolumes implements DirectVolumes {
  readonly #host: Host;

  constructor(host: Host) {
    this.#host = host;
  }

  pathOf(pod: Pod, { name }: Volume): string {
    return this.#host.directories.volume(toUid(pod.metadata?.uid), 'empty-dir', name);
  }

  async setUp(pod: Pod, volume: Volume): Promise<void> {
    const { files } = this.#host;
    const { medium = '' } = volume.emptyDir ?? {};
    const directory = this.pathOf(pod, volume);
    if (medium.startsWith('HugePages')) return this.#mountHugePages(directory, hugePageBytes(pod, medium));
    const isInMemory = medium === 'Memory';
    if (!isInMemory && medium !== '') throw new Error(`emptyDir medium ${medium} is not supported`);
    // A tmpfs keeps its default sticky bit, as upstream's.
    const made = isInMemory
      ? await makeTmpfs(this.#host, directory, 0o1777, memorySize(pod, volume))
      : await files.makeDirectory(directory, 0o777);
    const fsGroup = pod.spec?.securityContext?.fsGroup;
    // `fsGroupChangePolicy` applies only to volumes that outlive a pod.
    if (made && fsGroup !== undefined) await files.ownByGroup(directory, fsGroup);
  }

  async #mountHugePages(path: string, pageSizeBytes: number): Promise<void> {
    const { files, mounts } = this.#host;
    await files.makeDirectory(path);
    if (!(await mounts.isMountPoint(path))) await mounts.hugetlbfs(path, { pageSizeBytes, mode: 0o777 });
  }
}

/**
 * Page size of `HugePages-2Mi`, or for `HugePages` the only size that the pod requests. Source: pkg/volume/emptydir.
 */
function hugePageBytes(pod: Pod, medium: string): number {
  const named = /^HugePages-(.+)$/.exec(medium)?.[1];
  const containers = [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])];
  const requested = new Set(
    containers
      .flatMap(({ resources }) => Object.keys({ ...resources?.limits, ...resources?.requests }))
      .flatMap((name) => /^hugepages-(.+)$/.exec(name)?.[1] ?? []),
  );
  if (named !== undefined) {
    if (!requested.has(named)) throw new Error(`medium ${medium}: no container of the pod requests hugepages-${named}`);
    return parseBytes(named);
  }
  const [size, ...others] = requested;
  if (size === undefined) throw new Error('medium HugePages: no container of the pod requests huge pages');
  if (others.length > 0) throw new Error('medium HugePages: the pod requests pages of several sizes; name one of them');
  return parseBytes(size);
}

/**
 * The smaller one of the volume's size limit and the pod's memory limit. Undefined if neither is set; the tmpfs then
 * defaults to half of the memory.
 */
function memorySize(pod: Pod, volume: Volume): number | undefined {
  const limits = [podAmount(pod, 'limits', 'memory')];
  if (volume.emptyDir?.sizeLimit !== undefined) limits.push(parseBytes(volume.emptyDir.sizeLimit));
  const set = limits.filter((limit) => limit > 0);
  return set.length === 0 ? undefined : Math.min(...set);
}
