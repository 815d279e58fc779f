/** Files of an image as a read-only volume. Source: KEP-4639. */
import { isHostRootImage } from '../../../api/podspec/host-root-image.ts';
import { toUid } from '../../../base/brand.ts';
import type { PlainMount } from '../records.ts';
import type { VolumeRequest } from '../request.ts';
import type { RecordedType, RecordedVolumeHost, RecordedVolumes } from './type.ts';

export const image: RecordedType = {
  way: 'recorded',
  source: 'image',
  persistentSources: [],
  records: ['image'],
  isReadOnly: () => true,
  create: (host) => new ImageVolumes(host),
};

type Host = Pick<RecordedVolumeHost, 'records' | 'directories' | 'files' | 'runtime' | 'pullImage'>;

class ImageVolumes implements RecordedVolumes {
  readonly #host: Host;

  constructor(host: Host) {
    this.#host = host;
  }

  async setUp({ pod, volume }: VolumeRequest): Promise<void> {
    const { records, directories, files, runtime, pullImage } = this.#host;
    const source = volume.image ?? {};
    if (runtime.mountImage === undefined) {
      throw new Error('no volume plugin matched: image volumes are not supported on this node');
    }
    if (isHostRootImage(source.reference ?? '')) {
      throw new Error(
        `image ${source.reference}: the image is the root file system of the host and cannot be a volume; use another image`,
      );
    }
    const uid = toUid(pod.metadata?.uid);
    const path = directories.volume(uid, 'image', volume.name);
    const { id } = await pullImage(pod, source);
    await files.makeDirectory(path, 0o755);
    const record: PlainMount = { kind: 'image', uid, volume: volume.name, name: volume.name, block: false, path };
    await records.put(record);
    await runtime.mountImage(id, path);
  }

  async tearDown(record: PlainMount): Promise<void> {
    await this.#host.runtime.unmountImage?.(record.path);
    await this.#host.records.remove(record);
  }
}
