/** Downloads the layers of an image with limited concurrency. */
import { messageOf } from '../../../base/errors.ts';
import { type OnPullProgress, RuntimeError } from '../../port.ts';
import type { Descriptor } from '../image-config.ts';
import type { StoreLayout } from '../layout.ts';
import { downloadBlob, takePartial } from './blob-download.ts';
import type { RegistryClient } from './registry.ts';

const PARALLEL_DOWNLOADS = 3;

/** Throws RuntimeErrors; `pathOf` then contains the received bytes of each layer. */
export async function downloadLayers(
  layout: StoreLayout,
  layers: readonly Descriptor[],
  pathOf: (layer: Descriptor) => string,
  client: RegistryClient,
  onProgress: OnPullProgress,
): Promise<void> {
  // An image may contain the same layer twice.
  const left = [...new Map(layers.map((layer) => [layer.digest, layer])).values()].toReversed();
  const totalBytes = left.reduce((sum, { size }) => sum + size, 0);
  const received = new Map<string, number>();
  const worker = async (): Promise<void> => {
    for (let layer = left.pop(); layer !== undefined; layer = left.pop()) {
      const { digest, size } = layer;
      const path = pathOf(layer);
      await takePartial(layout, path);
      try {
        await downloadBlob({
          digest,
          size,
          path,
          request: (from) => client.blob(digest, from),
          progress: (bytes) => {
            received.set(digest, bytes);
            onProgress(
              [...received.values()].reduce((sum, each) => sum + each, 0),
              totalBytes,
            );
          },
        });
      } catch (error) {
        left.length = 0;
        throw error instanceof RuntimeError
          ? error
          : new RuntimeError('image-pull', messageOf(error), { cause: error });
      }
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: PARALLEL_DOWNLOADS }, worker));
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}
