/** What a host does beside upstream's components; each is switched in the bootstrap file. */
import { messageOf } from '../../base/errors.ts';
import type { InformerFactory } from '../../client/index.ts';
import type { ImageStore } from '../../io/images/index.ts';
import type { OpenedClient } from '../api-access.ts';
import { within } from '../process.ts';
import { type ImageDrops, startImageWork } from './image-drops.ts';
import { keepLocalVolumes } from './local-volumes.ts';
import { startMachineConfig } from './machine-config.ts';
import { deployManifests } from './manifests.ts';
import { publishImages } from './published-images.ts';
import type { RestartableKubelet } from './restartable-kubelet.ts';
import type { ControlPlaneRevisions } from './revisions.ts';

interface EmbeddedParts extends Pick<ImageDrops, 'settings' | 'recorder' | 'log'> {
  readonly api: OpenedClient;
  readonly kubelet: Pick<RestartableKubelet, 'restart' | 'forgetBackOff'>;
  readonly prepared: { readonly revisions: ControlPlaneRevisions };
}

const STOP_MS = 3_000;

/** The function that ends all of it. */
export async function startEmbedded(
  { settings, recorder, log, api, kubelet, prepared }: EmbeddedParts,
  images: ImageStore,
  nodeName: string,
  informers: InformerFactory,
): Promise<() => Promise<void>> {
  await keepLocalVolumes(settings.paths.localVolumes, nodeName, informers, api.client, log);
  publishImages(images, nodeName, informers, api.client, log);
  const stopImages = startImageWork({ settings, images, nodeName, recorder, log: log.named('images') });
  const stopManifests = await deployManifests(settings, log.named('manifests')).catch((error: unknown) => {
    log.error('deploy directory not followed', { error: messageOf(error) });
    return async () => {};
  });
  const stopRevisions = await prepared.revisions.start(kubelet);
  const machineConfig = await startMachineConfig({
    ...{ settings, nodeName, informers, client: api.client, recorder, images },
    restartKubelet: () => kubelet.restart(),
    log: log.named('machine-config'),
  });
  return async () => {
    await within(Promise.all([stopImages(), stopManifests(), stopRevisions(), machineConfig.stop()]), STOP_MS);
  };
}
