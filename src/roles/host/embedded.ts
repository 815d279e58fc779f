/** What a host does beside upstream's components; each is switched in the bootstrap file. */
import { messageOf } from '../../base/errors.ts';
import type { ApiClient, InformerFactory } from '../../client/index.ts';
import { type ImageDrops, startImageWork } from './image-drops.ts';
import { keepLocalVolumes } from './local-volumes.ts';
import { deployManifests } from './manifests.ts';

export interface EmbeddedParts extends ImageDrops {
  readonly informers: InformerFactory;
  readonly client: ApiClient;
}

/** The function that ends all of it. */
export async function startEmbedded(parts: EmbeddedParts): Promise<() => Promise<void>> {
  const { settings, nodeName, informers, client, log } = parts;
  await keepLocalVolumes(settings.paths.localVolumes, nodeName, informers, client, log);
  const stopImages = startImageWork({ ...parts, log: log.named('images') });
  const stopManifests = await deployManifests(settings, log.named('manifests')).catch((error: unknown) => {
    log.error('deploy directory not followed', { error: messageOf(error) });
    return async () => {};
  });
  return async () => {
    await Promise.all([stopImages(), stopManifests()]);
  };
}
