/**
 * Publishes the images in this host's store as Image objects with their commands and exposed ports. Each image is
 * published once. The names of the images are taken from the Node's status.
 */
import type { Node } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import type { NodeName } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient, InformerFactory } from '../../client/index.ts';
import type { Image } from '../../openshift/image-streams/kinds/images/index.ts';
import type { ImageStore } from '../../runtime/images/index.ts';

/** Starts to follow the Node and ends when the informers stop. */
export function publishImages(
  images: ImageStore,
  nodeName: NodeName,
  informers: InformerFactory,
  client: ApiClient,
  hostLog: Log,
): void {
  const log = hostLog.named('published-images');
  const published = new Set<string>();
  const publish = async (node: Node): Promise<void> => {
    const digests = (node.status?.images ?? []).flatMap(
      ({ names = [] }) => names.find((name) => name.includes('@')) ?? [],
    );
    for (const pullSpec of digests) {
      const digest = pullSpec.slice(pullSpec.indexOf('@') + 1);
      if (published.has(digest)) continue;
      const described = await images.describe(pullSpec);
      if (described === undefined) continue;
      const image: Image = {
        metadata: { name: digest },
        dockerImageReference: pullSpec,
        dockerImageMetadataVersion: '1.0',
        dockerImageMetadata: described.configuration,
      };
      try {
        await client.resource(resources.images).create(image);
      } catch (error) {
        if (!isApiError(error, 'AlreadyExists')) throw error;
      }
      published.add(digest);
    }
  };
  let publishing: Promise<void> = Promise.resolve();
  const changed = (node: Node): void => {
    publishing = publishing
      .then(() => publish(node))
      .catch((error: unknown) => log.warn('images not published', { error: messageOf(error) }));
  };
  const informer = informers.informer(resources.nodes, { fieldSelector: `metadata.name=${nodeName}` });
  informer.onChange({ added: changed, updated: changed });
}
