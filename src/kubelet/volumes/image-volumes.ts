/** Files of an image as a read-only volume. Source: KEP-4639. */
import type { Pod } from '../../api/generated/core/v1.ts';
import { isHostRootImage } from '../../api/podspec/host-root-image.ts';
import type { ImageStatus, Runtime } from '../../runtime/port.ts';
import type { VolumeFiles } from '../files-port.ts';
import type { PodDirectories } from '../pods/directories.ts';
import type { MountRecords, PlainMount } from './records.ts';
import type { VolumeRequest } from './request.ts';

export interface ImageSource {
  readonly reference?: string;
  readonly pullPolicy?: string;
}

export interface ImageVolumesOptions {
  readonly records: MountRecords;
  readonly directories: PodDirectories;
  readonly files: VolumeFiles;
  readonly runtime: Pick<Runtime, 'mountImage' | 'unmountImage'>;
  /** Returns the image after it is present on this node. */
  readonly pull: (pod: Pod, source: ImageSource) => Promise<ImageStatus>;
}

export const imageSourceOf = (volume: object): ImageSource | undefined =>
  (volume as { readonly image?: ImageSource }).image;

export class ImageVolumes {
  readonly #options: ImageVolumesOptions;

  constructor(options: ImageVolumesOptions) {
    this.#options = options;
  }

  async setUp({ pod, volume }: VolumeRequest, source: ImageSource): Promise<void> {
    const { records, directories, files, runtime, pull } = this.#options;
    if (runtime.mountImage === undefined) {
      throw new Error('no volume plugin matched: image volumes are not supported on this node');
    }
    if (isHostRootImage(source.reference ?? '')) {
      throw new Error(`image ${source.reference}: the host's root is no volume; use another image`);
    }
    const uid = pod.metadata?.uid ?? '';
    const path = directories.volume(uid, 'image', volume.name);
    const image = await pull(pod, source);
    await files.makeDirectory(path, 0o755);
    const record: PlainMount = { kind: 'image', uid, volume: volume.name, name: volume.name, block: false, path };
    await records.put(record);
    await runtime.mountImage(image.id, path);
  }

  async tearDown(record: PlainMount): Promise<void> {
    await this.#options.runtime.unmountImage?.(record.path);
    await this.#options.records.remove(record);
  }
}
