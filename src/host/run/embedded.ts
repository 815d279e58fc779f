/** Optional functions of a host that upstream's components do not have. Each is enabled in the bootstrap file. */
import { messageOf } from '../../base/errors.ts';
import type { InformerFactory } from '../../client/index.ts';
import type { ImageStore } from '../../runtime/images/index.ts';
import type { NetworkRestorer } from '../network/network-restorer.ts';
import { type ImageDrops, startImageWork } from '../node/image-drops.ts';
import { keepLocalVolumes } from '../node/local-volumes.ts';
import { publishImages } from '../node/published-images.ts';
import type { RestartableKubelet } from '../node/restartable-kubelet.ts';
import type { HostRuntime } from '../node/runtime.ts';
import { startClusterOperators } from '../openshift/cluster-operators.ts';
import { followProfile } from '../openshift/cluster-profile.ts';
import type { ProbedHost } from '../openshift/host-probes.ts';
import { startMachineConfig } from '../openshift/machine-config-daemon.ts';
import { startMachineConfigServer } from '../openshift/machine-config-server.ts';
import { deployManifests } from '../openshift/manifests.ts';
import { releaseVerifier } from '../openshift/release-trust.ts';
import type { ControlPlaneRevisions } from '../openshift/revisions.ts';
import { startUpdates } from '../openshift/updates.ts';
import type { OpenedClient } from '../process/api-access.ts';
import { within } from '../process/process.ts';

interface EmbeddedParts extends Pick<ImageDrops, 'settings' | 'recorder' | 'log'> {
  readonly api: OpenedClient;
  readonly restorer: Pick<NetworkRestorer, 'forwarding' | 'problem' | 'filterProblem'>;
  readonly kubelet: Pick<RestartableKubelet, 'restart' | 'forgetBackOff'>;
  readonly prepared: Pick<ProbedHost, 'cgroups' | 'driver'> & {
    readonly runtime: Pick<HostRuntime, 'network' | 'runtime'>;
    readonly revisions: ControlPlaneRevisions;
  };
}

const STOP_MS = 3_000;

/** Returns the function that stops all of them. */
export async function startEmbedded(
  { settings, recorder, log, api, kubelet, prepared, restorer }: EmbeddedParts,
  images: ImageStore,
  nodeName: string,
  informers: InformerFactory,
): Promise<() => Promise<void>> {
  await keepLocalVolumes(settings.paths.localVolumes, nodeName, informers, api.client, log);
  publishImages(images, nodeName, informers, api.client, log);
  const stopImages = startImageWork({ settings, images, nodeName, recorder, log: log.named('images') });
  const stopConfigServer = startMachineConfigServer(settings, api.client, log.named('machine-config-server'));
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
  followProfile({ settings, informers, restartKubelet: () => kubelet.restart(), log: log.named('profile') });
  const ownBridge = prepared.runtime.network.setMtu !== undefined;
  const verify = releaseVerifier(settings, informers, log.named('updates'));
  const operators = await startClusterOperators({
    ...{
      settings,
      ...prepared,
      ownBridge,
      networkProblem: () => restorer.problem() ?? restorer.filterProblem() ?? restorer.forwarding(),
      nodeName,
      api,
      informers,
      verify,
      log,
    },
  });
  const { prober } = operators;
  const stopUpdates = startUpdates({
    settings,
    runtime: prepared.runtime,
    nodeName,
    api,
    informers,
    verify,
    prober,
    log,
  });
  return async () => {
    const changing = [stopConfigServer(), machineConfig.stop(), operators.stop(), stopUpdates(), stopRevisions()];
    await within(Promise.all([stopImages(), stopManifests(), ...changing]), STOP_MS);
  };
}
